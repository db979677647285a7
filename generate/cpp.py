"""Lines of C++ and C as .clang-format has them: 110 columns."""
import textwrap
import typing

WIDTH = 110


def comment(text: str, indent: int = 0, mark: str = "///") -> typing.List[str]:
    """Paragraphs of `text`, each wrapped behind the mark."""
    lead = " " * indent + mark
    lines = []
    for paragraph in text.split("\n"):
        wrapped = textwrap.wrap(paragraph, WIDTH - len(lead) - 1, break_long_words=False,
                                break_on_hyphens=False)
        lines += [f"{lead} {line}" for line in wrapped] or [lead]
    return lines


def one_a_line(items: typing.Sequence[str], indent: int, comments: typing.Sequence[str], mark="///<",
               last_comma=False, wrapped_mark="///") -> typing.List[str]:
    """Items with commas between them, and comments behind those that have one: in columns where neighbours have
    them, and above an item where they do not fit behind it."""
    lead = " " * indent
    texts = [lead + item + ("," if last_comma or i + 1 < len(items) else "") for i, item in enumerate(items)]
    return trailing(texts, comments, mark, wrapped_mark)


def trailing(texts: typing.Sequence[str], comments: typing.Sequence[str], mark="///<", wrapped_mark="///",
             end="", gap="  ") -> typing.List[str]:
    """Lines with comments behind them, where they fit."""
    lines: typing.List[str] = []
    run: typing.List[typing.Tuple[str, str]] = []

    def flush():
        column = max((len(text) for text, _ in run), default=0)
        lines.extend(f"{text:<{column}}{gap}{mark} {words}{end}" for text, words in run)
        run.clear()

    def fits(rows):
        column = max(len(text) for text, _ in rows)
        return all(column + len(gap) + 1 + len(mark) + len(words) + len(end) <= WIDTH for _, words in rows)

    for text, words in zip(texts, comments):
        if words and fits(run + [(text, words)]):
            run.append((text, words))
            continue
        flush()
        if not words:
            lines.append(text)
        elif fits([(text, words)]):
            run.append((text, words))
        else:
            indent = len(text) - len(text.lstrip())
            lines += comment(words, indent, wrapped_mark) + [text]
    flush()
    return lines


def braced(head: str, items: typing.Sequence[str], tail: str, indent: int = 0) -> typing.List[str]:
    """head{items}tail in one line, or with an item a line below the first."""
    line = " " * indent + head + "{" + ", ".join(items) + "}" + tail
    if len(line) <= WIDTH and "\n" not in line:
        return [line]
    lead = " " * (indent + len(head) + 1)
    lines: typing.List[str] = []
    for i, item in enumerate(items):
        first = " " * indent + head + "{" if i == 0 else lead
        last = "}" + tail if i + 1 == len(items) else ","
        lines += assignment(first + item, last, len(lead))
    return lines


def assignment(text: str, last: str, indent: int) -> typing.List[str]:
    """`.name = value` of an aggregate; strings that are too long are cut."""
    if len(text + last) <= WIDTH or ' = "' not in text:
        return [text + last]
    name, value = text.split(" = ", 1)
    lead = " " * (indent + 4)
    if len(lead + value + last) <= WIDTH:
        return [name + " =", lead + value + last]
    return [name + " =", *string(value[1:-1], len(lead), last)]


def string(text: str, indent: int, last: str) -> typing.List[str]:
    """A string literal, cut where it does not fit in a line."""
    lead = " " * indent
    pieces = textwrap.wrap(text, WIDTH - indent - 3, break_long_words=False, break_on_hyphens=False)
    if len(lead + pieces[-1] + last) + 2 > WIDTH:
        pieces = textwrap.wrap(text, WIDTH - indent - 3 - len(last), break_long_words=False,
                               break_on_hyphens=False)
    return [f'{lead}"{piece} "' for piece in pieces[:-1]] + [f'{lead}"{pieces[-1]}"{last}']


def case(label: str, sentence: str) -> typing.List[str]:
    """A case of a switch that returns a string."""
    line = f'        case {label}: return "{sentence}";'
    if len(line) <= WIDTH:
        return [line]
    first, *rest = string(sentence, len("            return "), ";")
    return [f"        case {label}:", "            return " + first.lstrip(), *rest]


def filled(head: str, items: typing.Sequence[str], tail: str, indent: int = 0) -> typing.List[str]:
    """head + items + tail with as many items a line as there is room for, behind the head."""
    lead = " " * (indent + len(head))
    lines = [" " * indent + head]
    for i, item in enumerate(items):
        text = item + ("," if i + 1 < len(items) else tail)
        if len(lines[-1]) + len(text) + 1 > WIDTH and lines[-1].strip() not in (head.strip(), ""):
            lines.append(lead + text)
        else:
            lines[-1] += text if lines[-1].endswith(("(", "{")) or lines[-1] == lead else " " + text
    return lines


def columns(items: typing.Sequence[str], indent: int) -> typing.List[str]:
    """Items of a braced list in as many columns as save lines, where that is regular."""
    best = [[item] for item in items]
    for count in range(2, len(items) + 1 if len(items) > 4 else 0):
        sizes = [[len(item) for item in items[column::count]] for column in range(count)]
        regular = all(max(column) - min(column) <= 10 for column in sizes[:-1])
        rows = [items[start:start + count] for start in range(0, len(items), count)]
        if regular and indent + sum(max(column) + 1
                                    for column in sizes) - 1 <= WIDTH and len(rows) < len(best):
            best = rows
    widths = [max(len(row[i]) for row in best if i < len(row)) for i in range(len(best[0]))]
    return [" " * indent + " ".join(f"{item:<{width}}" for item, width in zip(row, widths)).rstrip()
            for row in best]


def listed(head: str, items: typing.Sequence[str]) -> typing.List[str]:
    """head{items}; in one line, or in columns behind the brace."""
    line = f"{head}{{{', '.join(items)}}};"
    if len(line) <= WIDTH:
        return [line]
    ended = [item + "," for item in items[:-1]] + [items[-1] + "};"]
    rows = columns(ended, len(head) + 1)
    return [f"{head}{{{rows[0].lstrip()}", *rows[1:]]


def real(value: float, suffix: str) -> str:
    """1e-05 with a suffix as people write it: 1e-5F."""
    text = f"{value:g}".replace("e-0", "e-")
    return (text if "." in text or "e" in text else text + ".0") + suffix


def number(value: typing.Union[int, float]) -> str:
    """2^k from 2^20 on as a shift; others as they are."""
    if isinstance(value, int) and value >= 1 << 20 and value & (value - 1) == 0:
        return f"std::int64_t{{1}} << {value.bit_length() - 1}"
    return repr(value)
