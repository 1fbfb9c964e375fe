"""LIBSVM, as svmlight and scikit-learn write it, too."""

import gzip

from tests.streams.corpus.case import Case

PLAIN = "+1 1:0.5 3:2\n-1 2:1\n"
READ = [({0: 0.5, 2: 2}, 1), ({1: 1}, -1)]
FROM_0 = ["features count from 0, as one is 0"]


def case(about, content, examples=(), *, file="a.svm", target=None, **given):
    options = {} if target is None else {"target": target}
    return Case(about, file, content, list(examples), options=options, **given)


CASES = [
    case("plain", PLAIN, READ),
    case("by another suffix", PLAIN, READ, file="a.libsvm"),
    case("compressed", gzip.compress(PLAIN.encode()), READ, file="a.svm.gz"),
    case("labels of several spellings", "+1 1:1\n1 1:2\n1.0 1:3\n-1 1:4\n",
         [({0: 1}, 1), ({0: 2}, 1), ({0: 3}, 1), ({0: 4}, -1)],
         notes=["'+1', '1', '1.0' are one class, 1"]),
    case("classes of numbers", "0 1:1\n2 1:2\n1 1:3\n", [({0: 1}, 0), ({0: 2}, 2), ({0: 3}, 1)]),
    case("classes of words", "ham 1:1\nspam 1:2\n", [({0: 1}, "ham"), ({0: 2}, "spam")]),
    case("comments, as scikit-learn writes them",
         "# Generated\n#\n" + PLAIN.replace("\n", " # row\n"), READ),
    case("line ends of Windows and blanks behind", PLAIN.replace("\n", " \r\n"), READ),
    case("a byte order mark", b"\xef\xbb\xbf" + PLAIN.encode(), READ),
    case("a row without features", "+1\n-1 1:1\n", [({}, 1), ({0: 1}, -1)]),
    case("labels of fractions", "1 1:1\n0.5 1:2\n", refused="0.5 ... no fractions"),
    case("indices from 0, as scikit-learn writes them", "1 0:1 2:3\n0 1:1\n",
         [({0: 1, 2: 3}, 1), ({1: 1}, 0)], notes=FROM_0),
    case("a topic, and indices from 0", "1 0:1 2:3\n0 1:1\n",
         [({0: 1, 2: 3}, True), ({1: 1}, False)], notes=FROM_0, target="1"),
    case("indices from 0 in any order", "1 2:3\t0:1\n0 1:1\n", [({0: 1, 2: 3}, 1), ({1: 1}, 0)],
         notes=FROM_0),
    case("indices below 0", "1 -1:1\n", refused="a.svm ... line 1 ... '-1' ... from 0 to"),
    case("one index twice", "1 1:1 1:2\n", refused="a.svm ... line 1"),
    case("infinite numbers", "1 1:inf\n", refused="a.svm ... line 1 ... inf"),
    case("no number", "1 1:x\n", refused="a.svm ... line 1 ... feature 1 holds 'x'"),
    case("no last line end", PLAIN.rstrip("\n"), refused="a.svm ... line 2 ... no newline"),
    case("a CSV file", "x,y\n1,2\n", refused="a.svm ... a CSV file is none"),
    case("several labels", "1,2 1:1\n2 1:2\n", refused="a ... no topic or several ... name"),
]  # fmt: skip
