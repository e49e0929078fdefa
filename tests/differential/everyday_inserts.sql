-- Inserts as ClickHouse's own tests and its users write them. `--` and columns: the table of the statements that follow.
-- a UInt8, b UInt8
INSERT INTO t VALUES (1, 2)
INSERT INTO t VALUES (1, 2), (3, 4), (5, 6)
INSERT INTO t VALUES (1, 1 + 1)
INSERT INTO t VALUES (1, 2);
INSERT INTO t VALUES (toUInt8(3), 4)
INSERT INTO t VALUES (3, 300)
INSERT INTO t VALUES (256 - 1, 0x10)
INSERT INTO t VALUES (1, -1)
INSERT INTO t VALUES (1, 2.0)
INSERT INTO t VALUES (1, '7')
INSERT INTO t VALUES (1, NULL)
INSERT INTO t VALUES (1, true)
INSERT INTO t VALUES (1 /* one */, 2)
INSERT INTO t VALUES (1, 2) -- a remark
INSERT INTO t VALUES (1, 2), (1 + 1, 2), (3, 1 + 1), (4, 5)
INSERT INTO t (*) VALUES (1, 2)
INSERT INTO t (* EXCEPT(b)) VALUES (1)
INSERT INTO t (* EXCEPT b) VALUES (2)
INSERT INTO t (t.*) VALUES (1, 2)
INSERT INTO t (COLUMNS('a')) VALUES (1)
INSERT INTO t (b, a) VALUES (1, 2)
INSERT INTO t (a) VALUES (1)
INSERT INTO t (t.a, t.b) VALUES (1, 2)
INSERT INTO TABLE t VALUES (1, 2)
INSERT INTO t SETTINGS max_insert_block_size = 1e3 VALUES (1, 2)
INSERT INTO t SETTINGS max_insert_block_size = 1_000 VALUES (1, 2)
INSERT INTO t SETTINGS max_insert_block_size = 1000 VALUES (1, 2)
INSERT INTO t SETTINGS input_format_values_interpret_expressions = 0 VALUES (1, 2)
INSERT INTO t SETTINGS input_format_values_deduce_templates_of_expressions = 0 VALUES (1 + 1, 2)
INSERT INTO t FORMAT Values (1, 2)
INSERT INTO t FORMAT Values (1 + 2, 2)
INSERT INTO t SELECT 1, 2
INSERT INTO t VALUES ((SELECT 5), 2)
INSERT INTO t VALUES (length('abc'), abs(-4))
INSERT INTO t VALUES (if(1 > 0, 7, 8), 2)
INSERT INTO t VALUES ('x', 2)
INSERT INTO t VALUES (1)
INSERT INTO t VALUES (1, 2, 3)
INSERT INTO t FORMAT CSV 1,2
INSERT INTO t FORMAT CSV 1,x
INSERT INTO t FORMAT CSV  1 , 2
INSERT INTO t FORMAT TSV 1	2
INSERT INTO t FORMAT JSONEachRow {"a":1,"b":2}
INSERT INTO t FORMAT JSONEachRow {"a":"1","b":2.0}
INSERT INTO t FORMAT JSONEachRow {"a":1}
INSERT INTO t FORMAT JSONEachRow {"A":1,"b":3}
INSERT INTO t FORMAT JSONEachRow {"a":300}
INSERT INTO t FORMAT JSONEachRow {"a":1,"c":3}
INSERT INTO t FORMAT JSONEachRow {"a":1e1,"b":true}
INSERT INTO t FORMAT CustomSeparated 1	2
INSERT INTO t SETTINGS format_custom_field_delimiter = '|' FORMAT CustomSeparated 1|2
INSERT INTO t SETTINGS format_custom_field_delimiter = ';' FORMAT CustomSeparatedWithNames a;b
INSERT INTO t SETTINGS format_regexp = '(\\d+) (\\d+)', format_regexp_escaping_rule = 'Raw' FORMAT Regexp 3 4
INSERT INTO t FORMAT Template 1 2
INSERT INTO t FORMAT TSKV a=1	b=2
INSERT INTO t FORMAT TSKV a=1	c=2
-- id UInt64, name String
INSERT INTO t VALUES (1, 'a'), (2, 'b')
INSERT INTO t VALUES (1, concat('a', 'b'))
INSERT INTO t VALUES (1, 'a' || 'b')
INSERT INTO t VALUES (1, repeat('x', 100))
INSERT INTO t VALUES (1, toString(5))
INSERT INTO t VALUES (1, 5)
INSERT INTO t VALUES (1, 'it''s')
INSERT INTO t VALUES (1, 'a\\b\n')
INSERT INTO t VALUES (1, 'odd \q')
INSERT INTO t VALUES (1, unhex('616263'))
INSERT INTO t VALUES (1, hex(255))
INSERT INTO t VALUES (1, NULL)
INSERT INTO t VALUES (1, char(65, 66))
INSERT INTO t VALUES (1, base64Encode('abc'))
INSERT INTO t VALUES (1, upper('abc'))
INSERT INTO t VALUES (1, lower('ABC')), (2, upper('abc')), (3, 'plain')
INSERT INTO t VALUES (1, toString(toDate('2020-01-01')))
INSERT INTO t VALUES (1, substring('abcdef', 2, 3))
INSERT INTO t VALUES (1, 'a'::String)
INSERT INTO t VALUES (1, CAST('a' AS String))
INSERT INTO t VALUES (pow(2, 10), 'p')
INSERT INTO t VALUES (intDiv(7, 2), 'p')
INSERT INTO t VALUES (1e3, 'p')
INSERT INTO t VALUES (18446744073709551615, 'max')
INSERT INTO t VALUES (18446744073709551616, 'over')
INSERT INTO t VALUES (1, $$here$$)
INSERT INTO t VALUES (1, reverse('abc'))
INSERT INTO t VALUES (cityHash64('a'), 'a')
INSERT INTO t (id, name) VALUES (1, 'x'), (2, concat('y', 'z'))
INSERT INTO t (id) VALUES (7)
INSERT INTO t (name) VALUES (formatRow('CSV', 1, 2))
INSERT INTO t FORMAT JSONEachRow {"id":1,"name":5}
INSERT INTO t FORMAT JSONEachRow {"id":"1","name":"x"}
INSERT INTO t FORMAT JSONEachRow {"id":-1,"name":"x"}
INSERT INTO t FORMAT JSONCompactEachRow [1,"x"]
INSERT INTO t FORMAT JSONCompactEachRow [1,"x",3]
INSERT INTO t FORMAT CSV 1,"x"
INSERT INTO t FORMAT CSV "1",x
INSERT INTO t SELECT number, 'x' FROM numbers(3)
INSERT INTO FUNCTION null('a UInt8') VALUES (1)
-- d Date, t DateTime('UTC'), v Int32
INSERT INTO t VALUES ('2020-01-01', '2020-01-01 00:00:00', 1)
INSERT INTO t VALUES (toDate('2020-01-01'), toDateTime('2020-01-01 00:00:00'), 1)
INSERT INTO t VALUES (toDate('2020-01-01') + 1, toDateTime('2020-01-01 00:00:00') + 60, -1)
INSERT INTO t VALUES ('2020-1-1', '2020-01-01 00:00:00', 1)
INSERT INTO t VALUES (18262, 1577836800, 1)
INSERT INTO t VALUES ('2020-01-01', '2020-01-01', 1)
INSERT INTO t VALUES ('2020-01-01', '2020-01-01T00:00:00Z', 1)
INSERT INTO t VALUES (toDate('2020-01-01'), toDateTime('2020-01-01 00:00:00', 'UTC'), 1), (toDate('2020-01-02'), toDateTime('2020-01-02 00:00:00', 'UTC'), 2)
INSERT INTO t VALUES (toDate(18262), toDateTime(1577836800), 1)
INSERT INTO t VALUES (toStartOfMonth(toDate('2020-01-15')), toStartOfHour(toDateTime('2020-01-01 10:20:30')), 1)
INSERT INTO t VALUES (addDays(toDate('2020-01-01'), 30), addHours(toDateTime('2020-01-01 00:00:00'), 5), 1)
INSERT INTO t VALUES (makeDate(2020, 1, 1), makeDateTime(2020, 1, 1, 0, 0, 0), 1)
INSERT INTO t VALUES (DATE '2020-01-01', TIMESTAMP '2020-01-01 00:00:00', 1)
INSERT INTO t VALUES (toDate('2020-01-01') - INTERVAL 1 DAY, toDateTime('2020-01-01 00:00:00') - INTERVAL 1 HOUR, 1)
INSERT INTO t VALUES ('2020-01-01'::Date, '2020-01-01 00:00:00'::DateTime, 1)
INSERT INTO t VALUES (CAST('2020-01-01', 'Date'), CAST('2020-01-01 00:00:00', 'DateTime'), 1)
INSERT INTO t VALUES ('2149-06-07', '2106-02-08 00:00:00', 1)
INSERT INTO t VALUES ('2020-13-01', '2020-01-01 00:00:00', 1)
INSERT INTO t VALUES ('0000-00-00', '0000-00-00 00:00:00', 1)
INSERT INTO t VALUES ('', '2020-01-01 00:00:00', 1)
INSERT INTO t VALUES (NULL, NULL, NULL)
INSERT INTO t (d) VALUES (yesterday() - yesterday())
INSERT INTO t (v) VALUES (toInt32('-5'))
INSERT INTO t (v) VALUES (-(3))
INSERT INTO t (v) VALUES (- 3)
INSERT INTO t (v) VALUES (+3)
INSERT INTO t (v) VALUES (2147483648)
INSERT INTO t (v) VALUES (1.5)
INSERT INTO t (d, v) VALUES (toDate('2020-01-01'), 1), ('2020-01-02', 2), (toDate('2020-01-03'), 1 + 2)
INSERT INTO t FORMAT CSV 2020-01-01,2020-01-01 00:00:00,1
INSERT INTO t FORMAT CSV 2020-1-1,2020-01-01 00:00:00,1
INSERT INTO t FORMAT JSONEachRow {"d":"2020-01-01","t":"2020-01-01 00:00:00"}
INSERT INTO t FORMAT JSONEachRow {"d":"2020-01-01","t":1577836800}
INSERT INTO t FORMAT JSONEachRow {"d":18262,"t":"1577836800"}
INSERT INTO t FORMAT JSONEachRow {"t":"2020-01-01 00:00:00.123"}
INSERT INTO t FORMAT JSONEachRow {"t":"1 Jan 2020 10:00:00"}
-- id UInt32, a Array(UInt32), m Map(String, UInt64), p Tuple(Int8, String)
INSERT INTO t VALUES (1, [1, 2], {'a': 1}, (1, 'x'))
INSERT INTO t VALUES (1, array(1, 2), map('a', 1), tuple(1, 'x'))
INSERT INTO t VALUES (1, range(10), map(), (1, 'x'))
INSERT INTO t VALUES (1, [], {}, (0, ''))
INSERT INTO t VALUES (1, [1 + 1, 3], {'a': 1 + 1}, (1, concat('x', 'y')))
INSERT INTO t VALUES (1, [[1, 2], [3]][1], {'a': 1}, (1, 'x'))
INSERT INTO t VALUES (1, emptyArrayUInt32(), map('k', 5, 'l', 6), (-1, 'x'))
INSERT INTO t VALUES (1, arrayMap(x -> x * 2, [1, 2, 3]), {}, (1, 'x'))
INSERT INTO t VALUES (1, [NULL], {}, (1, 'x'))
INSERT INTO t VALUES (1, ['1', '2'], {}, (1, 'x'))
INSERT INTO t VALUES (1, '[1,2]', {}, (1, 'x'))
INSERT INTO t VALUES (1, [1, 2], {'a': -1}, (1, 'x'))
INSERT INTO t VALUES (1, [1., 2], {}, (1, 'x'))
INSERT INTO t VALUES (1, arrayConcat([1], [2, 3]), {}, (1, 'x'))
INSERT INTO t VALUES (1, splitByChar(',', '1,2'), {}, (1, 'x'))
INSERT INTO t VALUES (1, [1, 2], {'a': 1}, (300, 'x'))
INSERT INTO t VALUES (1, [1, 2], CAST((['a'], [1]), 'Map(String, UInt64)'), (1, 'x'))
INSERT INTO t VALUES (1, [1, 2,], {}, (1, 'x'))
INSERT INTO t FORMAT JSONEachRow {"id":1,"a":[1,2],"m":{"a":1},"p":[1,"x"]}
INSERT INTO t FORMAT JSONEachRow {"id":1,"a":["1"],"m":{"a":"1"},"p":[1,"x"]}
INSERT INTO t FORMAT JSONEachRow {"id":1,"a":null,"m":{},"p":[1]}
INSERT INTO t FORMAT CSV 1,"[1,2]","{'a':1}",1,x
INSERT INTO t FORMAT TSV 1	[1,2]	{'a':1}	(1,'x')
-- k UInt64, n Nullable(Int64), s Nullable(String), l LowCardinality(String)
INSERT INTO t VALUES (1, 1, 'a', 'b')
INSERT INTO t VALUES (1, NULL, NULL, 'b')
INSERT INTO t VALUES (1, 1 + NULL, NULL, 'b')
INSERT INTO t VALUES (1, toInt64OrNull('x'), nullIf('a', 'a'), lower('B'))
INSERT INTO t VALUES (1, null, Null, 'b')
INSERT INTO t VALUES (1, '5', 5, 'b')
INSERT INTO t VALUES (1, -5, 'a', concat('b', 'c'))
INSERT INTO t VALUES (1, 9223372036854775808, 'a', 'b')
INSERT INTO t VALUES (1, toNullable(5), toNullable('x'), toLowCardinality('y'))
INSERT INTO t VALUES (1, CAST(NULL, 'Nullable(Int64)'), 'a', 'b')
INSERT INTO t VALUES (1, materialize(1), 'a', 'b')
INSERT INTO t VALUES (1, 1.0, 'a', 'b')
INSERT INTO t VALUES (number, 1, 'a', 'b')
INSERT INTO t VALUES (1, nosuch(1), 'a', 'b')
INSERT INTO t VALUES (1, throwIf(1), 'a', 'b')
INSERT INTO t FORMAT JSONEachRow {"k":1,"n":null,"s":null,"l":null}
INSERT INTO t FORMAT JSONEachRow {"k":1,"n":1.0,"s":"x"}
INSERT INTO t FORMAT CSV 1,\N,\N,x
INSERT INTO t FORMAT CSV 1,,,x
INSERT INTO t FORMAT CSV 1,NULL,NULL,x
-- f Float64, g Float32, e Decimal(18, 4), i Int128
INSERT INTO t VALUES (1.5, 2.5, 3.25, 4)
INSERT INTO t VALUES (1 / 3, 1 / 3, 1.5, 4)
INSERT INTO t VALUES (pi(), e(), toDecimal64(1.5, 4), toInt128(5))
INSERT INTO t VALUES (inf, -inf, 0, 0)
INSERT INTO t VALUES (nan, nan, 0, 0)
INSERT INTO t VALUES (1e400, 1e39, 0, 0)
INSERT INTO t VALUES (0.1, 0.1, 0.12345, 0)
INSERT INTO t VALUES (0.1, 0.1, '0.1', '170141183460469231731687303715884105727')
INSERT INTO t VALUES (sqrt(2), exp(1), 1 + 0.5, 2 * 3)
INSERT INTO t VALUES (-0., +1., 1e2, -1)
INSERT INTO t VALUES (1, 1, toDecimal32('1.5', 2), 170141183460469231731687303715884105727)
INSERT INTO t VALUES (0x1p3, 1, 1, 1)
INSERT INTO t VALUES (1_000.5, 1, 1, 1_000)
INSERT INTO t VALUES (.5, 5., 1, 1)
INSERT INTO t FORMAT JSONEachRow {"f":1.5,"g":"2.5","e":1.5,"i":"5"}
INSERT INTO t FORMAT JSONEachRow {"f":"nan","g":null,"e":1.55555,"i":5}
INSERT INTO t FORMAT CSV 1.5,2.5,3.5,4
-- u UUID, e Enum8('a' = 1, 'b' = 2), b Bool, f FixedString(4), v IPv4, w IPv6
INSERT INTO t VALUES ('61f0c404-5cb3-11e7-907b-a6006ad3dba0', 'a', true, 'abcd', '1.2.3.4', '::1')
INSERT INTO t VALUES (toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0'), 1, 1, toFixedString('ab', 4), toIPv4('1.2.3.4'), toIPv6('::1'))
INSERT INTO t VALUES (toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0'), 2, 0, 'ab', IPv4StringToNum('1.2.3.4'), '::ffff:1.2.3.4')
INSERT INTO t VALUES ('61f0c4045cb311e7907ba6006ad3dba0', 'b', 'yes', 'abc', 16909060, '1.2.3.4')
INSERT INTO t VALUES ('61f0c404-5cb3-11e7-907b-a6006ad3dba0', 'c', true, 'abcd', '1.2.3.4', '::1')
INSERT INTO t VALUES ('61f0c404-5cb3-11e7-907b-a6006ad3dba0', 'a', NOT true, 'abcde', '1.2.3.4', '::1')
INSERT INTO t VALUES ('61f0c404-5cb3-11e7-907b-a6006ad3dba0', CAST(1 AS Enum8('a' = 1, 'b' = 2)), 1 = 1, 'x', '1.2.3.4', '::1')
INSERT INTO t (b) VALUES (5)
INSERT INTO t (b) VALUES ('true')
INSERT INTO t (e) VALUES (1)
INSERT INTO t (f) VALUES (unhex('00010203'))
INSERT INTO t (u) VALUES (toUUID(''))
INSERT INTO t FORMAT JSONEachRow {"u":"61f0c404-5cb3-11e7-907b-a6006ad3dba0","e":"a","b":1,"f":"ab"}
INSERT INTO t FORMAT JSONEachRow {"e":1,"b":"true"}
INSERT INTO t FORMAT CSV 61f0c404-5cb3-11e7-907b-a6006ad3dba0,a,yes,abcd,1.2.3.4,::1
-- id UInt32, created DateTime('UTC') DEFAULT toDateTime('2020-01-01 00:00:00', 'UTC'), n UInt32 DEFAULT id + 1, m UInt32 MATERIALIZED id * 2
INSERT INTO t VALUES (1, '2020-01-02 00:00:00', 5)
INSERT INTO t VALUES (1, toDateTime('2020-01-02 00:00:00', 'UTC'), 5)
INSERT INTO t VALUES (1 + 1, DEFAULT, DEFAULT)
INSERT INTO t VALUES (1, '2020-01-02 00:00:00', NULL)
INSERT INTO t VALUES (1, toDateTime('2020-01-02 00:00:00', 'UTC'), NULL)
INSERT INTO t VALUES (1, DEFAULT, 5)
INSERT INTO t VALUES (1, '2020-01-02 00:00:00', 5), (2, DEFAULT, 7)
INSERT INTO t (id) VALUES (1)
INSERT INTO t (id) VALUES (1 + 1)
INSERT INTO t (id, n) VALUES (1 + 1, 2 * 3)
INSERT INTO t (* EXCEPT(created)) VALUES (1, 2)
INSERT INTO t (* EXCEPT(created, n)) VALUES (3)
INSERT INTO t FORMAT JSONEachRow {"id":1}
INSERT INTO t FORMAT JSONEachRow {"id":"1","n":"2"}
INSERT INTO t (id, n) FORMAT JSONEachRow {"id":1} {"id":2,"n":3}
INSERT INTO t (id) FORMAT JSONEachRow {"id":-1}
-- id UInt32, p Point, r Ring, y Polygon, z MultiPolygon
INSERT INTO t VALUES (1, (1, 2), [(0, 0), (1, 1)], [[(0, 0), (1, 1)]], [[[(0, 0), (1, 1)]]])
INSERT INTO t VALUES (1, tuple(1, 2), [tuple(0, 0)], [], [])
INSERT INTO t VALUES (1, (1.5, -2), [], readWKTPolygon('POLYGON((1 0,10 0,10 10,0 10,1 0))'), [])
INSERT INTO t (id, p) VALUES (1, readWKTPoint('POINT (1.2 3.4)'))
INSERT INTO t (id, p) FORMAT JSONEachRow {"id":1,"p":[1,2]}
INSERT INTO t (id, p) FORMAT CSV 1,"(1,2)"
-- id UInt32, x BFloat16, i Time, j Time64(3)
INSERT INTO t VALUES (1, 1.5, '12:34:56', '12:34:56.789')
INSERT INTO t VALUES (1, toBFloat16(1.5), toTime('12:34:56'), toTime64('12:34:56.789', 3))
INSERT INTO t VALUES (1, 1 + 1, 45296, 45296.5)
INSERT INTO t FORMAT JSONEachRow {"id":1,"x":1.5,"i":"12:34:56","j":"12:34:56.789"}
INSERT INTO t FORMAT JSONEachRow {"id":1,"x":"1.5","i":45296,"j":"2:03"}
-- id UInt32, j JSON
INSERT INTO t VALUES (1, '{"a":1}')
INSERT INTO t VALUES (1, '{"a":{"b":[1,2]}}'), (2, '{}')
INSERT INTO t VALUES (1, concat('{"a":', '1}'))
INSERT INTO t VALUES (1, toJSONString(map('a', 1)))
INSERT INTO t VALUES (1, '{"a":')
INSERT INTO t FORMAT JSONEachRow {"id":1,"j":{"a":1}}
INSERT INTO t FORMAT JSONCompactEachRow [1,{"a":1}]
INSERT INTO t FORMAT JSONColumns {"id":[1],"j":[{"a":1}]}
INSERT INTO t FORMAT TSKV id=1	j={"a":1}
INSERT INTO t FORMAT CSV 1,"{""a"":1}"
-- id UInt32, d Dynamic, v Variant(UInt64, String, Array(UInt64))
INSERT INTO t VALUES (1, 5, 5)
INSERT INTO t VALUES (1, 'x', 'x')
INSERT INTO t VALUES (1, NULL, NULL)
INSERT INTO t VALUES (1, [1, 2], [1, 2])
INSERT INTO t VALUES (1, 5::UInt8, 'y'::String)
INSERT INTO t VALUES (1, toDate('2020-01-01'), 1 + 1)
INSERT INTO t (id, v) VALUES (1, 'x'), (2, 3)
INSERT INTO t (id, d) VALUES (1, 'x'), (2, 3)
INSERT INTO t FORMAT JSONEachRow {"id":1,"d":5,"v":"x"}
INSERT INTO t FORMAT JSONColumns {"id":[1],"d":[1],"v":[2]}
-- id UInt32, u AggregateFunction(uniq, UInt64), c AggregateFunction(count), m SimpleAggregateFunction(max, UInt64)
INSERT INTO t (id, m) VALUES (1, 5)
INSERT INTO t (id, c) VALUES (1, arrayReduce('countState', [1, 2, 3]))
INSERT INTO t (id, u) VALUES (1, initializeAggregation('uniqState', 5))
INSERT INTO t (id, u) VALUES (1, (SELECT uniqState(number) FROM numbers(10)))
INSERT INTO t (id, c) VALUES (1, unhex('05'))
INSERT INTO t SELECT 1, uniqState(toUInt64(1)), countState(), 5
-- id UInt32, q QBit(Float32, 4)
INSERT INTO t VALUES (1, [1, 2, 3, 4])
INSERT INTO t VALUES (1, [1 + 1, 2, 3, 4])
INSERT INTO t FORMAT JSONEachRow {"id":1,"q":[1,2,3,4]}
-- id UInt32, `n.a` Array(UInt8), `n.b` Array(String)
INSERT INTO t VALUES (1, [1, 2], ['x', 'y'])
INSERT INTO t VALUES (1, [1, 2], ['x'])
INSERT INTO t VALUES (1, array(1), array('x'))
INSERT INTO t (id, n.a, n.b) VALUES (1, [1], ['x'])
INSERT INTO t (id, n.a) VALUES (1, [1])
INSERT INTO t (id, n.a) VALUES (1, range(2))
INSERT INTO t FORMAT JSONEachRow {"id":1,"n":{"a":[1],"b":["x"]}}
