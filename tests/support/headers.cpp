// Nothing: the target of this file holds the headers that all test programs have precompiled (tests/CMakeLists.txt).
