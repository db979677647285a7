module hone

go 1.19
