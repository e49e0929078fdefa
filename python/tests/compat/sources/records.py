"""A small program on the synchronous client and DB-API."""

import json
import sys

import clickhouse_connect
from clickhouse_connect import dbapi
from clickhouse_connect.driver.tools import insert_file

where = json.loads(sys.argv[1])
found = {}
with clickhouse_connect.get_client(**where) as client:
    client.command("CREATE TABLE people (name String, age UInt8) ENGINE MergeTree ORDER BY name")
    with open("people.csv", "w") as file:
        file.write("name,age\nAnn,30\nBob,40\n")
    insert_file(client, "people", "people.csv")
    client.insert("people", [["Cid", 50]], column_names=["name", "age"])
    with client.query_rows_stream("SELECT * FROM people ORDER BY name") as stream:
        found["rows"] = [list(row) for row in stream]
    found["frame"] = client.query_df("SELECT * FROM people ORDER BY name").to_dict("records")

connection = dbapi.connect(**where)
cursor = connection.cursor()
cursor.executemany("INSERT INTO people (name, age) VALUES", [("Dot", 60), ("Eve", 70)])
cursor.execute("SELECT name, age FROM people WHERE age > %(age)s ORDER BY name", {"age": 35})
found["columns"] = [column[0] for column in cursor.description]
found["first"] = list(cursor.fetchone())
found["rest"] = [list(row) for row in cursor.fetchall()]
cursor.close()
connection.close()
print(json.dumps(found))
