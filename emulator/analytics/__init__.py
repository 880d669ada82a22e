"""Analytics Engine: data points that Workers write, and that tests read.

point.py     what a point is, and what the runtime refuses
bindings.py  what user code has: `writeDataPoint`
service.py   the datasets of one emulator, and what lasts
"""
