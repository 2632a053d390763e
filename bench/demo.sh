#!/bin/sh
# Three questions to the sample warehouse: a count by group, and two that need codes of the glossary.
# usage: demo.sh LYNX DATABASE DOCS
set -eu
lynx=$1 database=$2 docs=$3
bold='' plain=''
if [ -t 1 ]; then bold=$(printf '\033[1m') plain=$(printf '\033[0m'); fi
ask() {
    printf '\n%s? %s%s\n' "$bold" "$1" "$plain"
    "$lynx" ask "$1" --db "$database" --docs "$docs" || [ $? -eq 1 ]
}
ask "How many stores, open or closed, does each region have? Give the region and the number of stores, regions in alphabetical order."
ask "How many orders were sold on the marketplace?"
ask "How many customers are Gold members of the loyalty programme?"
printf '\nThe command is %s; activate its environment, or call it by this path.\n' "$lynx"
