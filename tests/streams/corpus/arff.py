"""ARFF as WEKA, MOA, UCI and OpenML have it."""

from tests.streams.corpus.case import Case

HEAD = "@relation w\n@attribute t numeric\n@attribute sky {sunny, rainy}\n@attribute y {yes, no}\n"
PLAIN = HEAD + "@data\n21.5,sunny,no\n?,rainy,yes\n3,?,no\n"
READ = [({"t": 21.5, "sky": "sunny"}, "no"), ({"sky": "rainy"}, "yes"), ({"t": 3}, "no")]
ACCENTS = "@relation r\n@attribute größe real\n@attribute y {für,gegen}\n@data\n1,für\n2,gegen\n"


def attribute(kind, *rows):
    """Return a file with the attribute x, of which each row has a value, and a class."""
    data = "".join(f"{i},{row},{'ab'[i % 2]}\n" for i, row in enumerate(rows))
    head = f"@relation r\n@attribute i numeric\n@attribute x {kind}\n@attribute y {{a,b}}\n"
    return f"{head}@data\n{data}"


CASES = [
    Case("of WEKA", "a.arff", PLAIN, READ),
    Case("in capitals, with comments, blank lines and line ends of Windows", "a.arff",
         "% weather\n\n" + PLAIN.replace("@relation", "@RELATION").replace("@attribute",
         "@ATTRIBUTE")
         .replace("numeric", "REAL").replace("@data\n", "@DATA\n% rows\n\n").replace("\n", "\r\n"),
         READ),
    Case("by its content", "weather.txt", PLAIN, READ),
    Case("no last line end", "a.arff", PLAIN.rstrip("\n"), READ),
    Case("blanks around all values, as UCI has them", "a.arff",
         HEAD.replace("{sunny, rainy}",
         "{ sunny , rainy }") + "@data\n 21.5 , sunny , no\n? ,rainy, yes\n3,\t?,no \n",
         READ),
    Case("of KEEL", "a.dat", "@relation r\n@attribute x real [0.5, 2.5]\n@attribute y {no, yes}\n"
         "@inputs x\n@outputs y\n@data\n0.5, no\n2.5, yes\n",
         [({"x": .5}, "no"), ({"x": 2.5}, "yes")]),
    Case("tabs in the head", "a.arff", PLAIN.replace("@attribute ", "@attribute\t"), READ),
    Case("tabs between values", "a.arff",
         HEAD + "@data\n21.5\tsunny\tno\n?\trainy\tyes\n3\t?\tno\n", READ),
    Case("names and values in quotes", "a.arff",
         "@relation 'my data'\n@attribute \"air temp\" real\n"
         "@attribute 'the sky' {'very sunny',\"it's grey\"}\n"
         "@attribute 'y' {'a, b','c\\'d'}\n@data\n1,'very sunny','a, b'\n2,\"it's grey\",'c\\'d'\n",
         [({"air temp": 1, "the sky": "very sunny"}, "a, b"),
         ({"air temp": 2, "the sky": "it's grey"}, "c'd")]),
    Case("accents in UTF-8", "a.arff",
         ACCENTS,
         [({"größe": 1}, "für"), ({"größe": 2}, "gegen")]),
    Case("accents in Latin-1", "a.arff",
         ACCENTS.encode("latin-1"),
         [({"größe": 1}, "für"), ({"größe": 2}, "gegen")],
         options={"target": "y", "encoding": "latin-1"}),
    Case("accents in Latin-1, which nobody named", "a.arff",
         "@relation r\n@attribute größe real\n@attribute y {a}\n@data\n1,a\n".encode("latin-1"),
         refused="a.arff ... line 2 ... not in UTF-8 (byte 0xf6) ... encoding"),
    Case("nominal numbers are categories", "a.arff", attribute("{1,2}", "1", "2", "1"),
         [({"i": 0, "x": "1"}, "a"), ({"i": 1, "x": "2"}, "b"), ({"i": 2, "x": "1"}, "a")]),
    Case("nominal values that look missing", "a.arff",
         attribute("{none,NA,some}", "none", "NA", "some", "?"),
         [({"i": 0, "x": "none"}, "a"), ({"i": 1, "x": "NA"}, "b"), ({"i": 2, "x": "some"}, "a"),
         ({"i": 3}, "b")]),
    Case("an integer with a range", "a.arff", attribute("integer [0,9]", 1, 2),
         [({"i": 0, "x": 1}, "a"), ({"i": 1, "x": 2}, "b")]),
    Case("strings", "a.arff", attribute("string", "'a b'", "'c, d'", "'a b'"),
         [({"i": 0, "x": "a b"}, "a"), ({"i": 1, "x": "c, d"}, "b"), ({"i": 2, "x": "a b"}, "a")]),
    Case("dates of WEKA's own format", "a.arff",
         attribute("date", "2026-01-02T00:00:00", "2026-01-01T12:00:00"),
         [({"i": 1}, "b"), ({"i": 0}, "a")], options={"target": "y", "time": "x"}),
    Case("dates of a format in quotes", "a.arff",
         attribute("date 'yyyy-MM-dd HH:mm:ss'", "'2026-01-02 00:00:00'",
         '"2026-01-01 12:00:00"'),
         [({"i": 1}, "b"), ({"i": 0}, "a")], options={"target": "y", "time": "x"}),
    Case("dates with day first, as their format says", "a.arff",
         attribute('date "dd/MM/yyyy"', "02/01/2026", "01/02/2026", "03/01/2026"),
         [({"i": 0}, "a"), ({"i": 2}, "a"), ({"i": 1}, "b")], options={"target": "y", "time": "x"}),
    Case("a date of another format than its own", "a.arff",
         attribute('date "dd/MM/yyyy"', "02/01/2026", "2026-01-03"),
         refused="a.arff ... line 7 ... 'x' ... '2026-01-03' ... format",
         options={"target": "y", "time": "x"}),
    Case("sparse rows", "a.arff", HEAD + "@data\n{0 21.5, 2 no}\n{1 rainy}\n{0 3, 1 ?, 2 no}\n{}\n",
         [({"t": 21.5, "sky": "sunny"}, "no"), ({"t": 0, "sky": "rainy"}, "yes"),
          ({"t": 3}, "no"), ({"t": 0, "sky": "sunny"}, "yes")]),
    Case("sparse rows with tabs and weights", "a.arff",
         HEAD + "@data\n{0\t21.5, 2\tno}, {2}\n{1 rainy},{1}\n",
         [({"t": 21.5, "sky": "sunny"}, "no"), ({"t": 0, "sky": "rainy"}, "yes")],
         ["left out: weights ... '{2}' ... line 6"]),
    Case("weights of rows", "a.arff",
         HEAD + "@data\n21.5,sunny,no,{2.5}\n?,rainy,yes,{1}\n3,?,no\n", READ,
         ["left out: weights ... '{2.5}' ... line 6"]),
    Case("a stream of MOA", "a.arff",
         "@relation 'generators.SEAGenerator -f 2'\n\n"
         "@attribute attrib1 numeric\n@attribute attrib2 numeric\n"
         "@attribute class {groupA,groupB}\n\n@data\n\n7.308782,3.41,groupA,\n8.5,0.2,groupB,\n",
         [({"attrib1": 7.308782, "attrib2": 3.41}, "groupA"),
         ({"attrib1": 8.5, "attrib2": .2}, "groupB")],
         ["left out: empty values at the end of rows ... line 9"], options={"target": "class"}),
    Case("infinite numbers", "a.arff", attribute("real", "1", "Infinity", "2", "1e400"),
         [({"i": 0, "x": 1}, "a"), ({"i": 1}, "b"), ({"i": 2, "x": 2}, "a"), ({"i": 3}, "b")],
         ["'x' ... 'Infinity' (1), '1e400' (1) count as missing"]),
    Case("words among numbers", "a.arff", attribute("real", "1", "2", "many", "4 % doubtful", "5"),
         [({"i": 0, "x": 1}, "a"), ({"i": 1, "x": 2}, "b"), ({"i": 2}, "a"), ({"i": 3}, "b"),
         ({"i": 4, "x": 5}, "a")],
         ["3 of 5 values of 'x' are numbers; 'many' (1), '4 % doubtful' (1) count as missing"]),
    Case("a value too many", "a.arff", HEAD + "@data\n1,sunny,no,7\n",
         refused="a.arff ... line 6 ... 4 values for 3 attributes"),
    Case("a value too few", "a.arff", HEAD + "@data\n1,sunny\n",
         refused="a.arff ... line 6 ... 2 values for 3 attributes"),
    Case("a value that is not declared", "a.arff", HEAD + "@data\n1,cloudy,no\n",
         refused="a.arff ... line 6 ... 'sky' is 'cloudy', none of its values sunny, rainy"),
    Case("a sparse row with an index too large", "a.arff", HEAD + "@data\n{7 1}\n",
         refused="a.arff ... line 6 ... '7 1' is no index and value"),
    Case("relational attributes", "a.arff",
         "@relation r\n@attribute bag relational\n@attribute x real\n@end bag\n@data\n",
         refused="a.arff ... line 2 ... 'bag' ... relational"),
    Case("one name twice", "a.arff",
         "@relation r\n@attribute x real\n@attribute x real\n@attribute y {a}\n@data\n1,2,a\n",
         refused="2 columns are called 'x'"),
    Case("no rows", "a.arff", HEAD + "@data\n", refused="a has names of columns and no rows"),
    Case("no data", "a.arff", HEAD, refused="a.arff: is no ARFF file: it has no line @data"),
    Case("nothing of ARFF", "a.arff", "x,y\n1,2\n", refused="a.arff ... line 1 ... 'x,y'"),
]  # fmt: skip
