#!/bin/bash
if [ "$(python3 answer.py)" = 6 ]; then echo 1; else echo 0; fi >/logs/verifier/reward.txt
