"""The same payload to the gateway and straight to ClickHouse: what lands, or what is refused, has to be the same.

- `scalars.py`, `times.py`, `composites.py`: values of a type, everyday ones and odd ones, as JSON and as SQL
- `payloads.py`: rows of them in the formats' many layouts, and damaged payloads
- `duel.py`: sends each case to both and compares answers and rows
- `budget.py`: the seed and how many cases (`WINDROW_DIFFERENTIAL_SEED`, `WINDROW_DIFFERENTIAL_CASES`)
"""
