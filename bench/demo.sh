#!/bin/sh
# Three questions to the sample warehouse: a count by group, one that needs the glossary, a join.
# usage: demo.sh LYNX DATABASE DOCS
set -eu
lynx=$1 database=$2 docs=$3
ask() {
    printf '\n\033[1m? %s\033[0m\n' "$1"
    "$lynx" ask "$1" --db "$database" --docs "$docs" || [ $? -eq 1 ]
}
ask "How many stores, open or closed, does each region have? Give the region and the number of stores, regions in alphabetical order."
ask "How many orders were sold on the marketplace?"
ask "How many orders placed in 2024 were sold in stores of each region? Show the region of the store and the number of orders, largest number first."
