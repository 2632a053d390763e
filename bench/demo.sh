#!/bin/sh
# Three questions to the sample warehouse: the first rows of a table, and two that need codes of the
# glossary. The program is the one that was compiled for this warehouse.
# usage: demo.sh LYNX DATABASE DOCS ARTIFACT
set -eu
lynx=$1 database=$2 docs=$3 artifact=$4
bold='' plain=''
if [ -t 1 ]; then bold=$(printf '\033[1m') plain=$(printf '\033[0m'); fi
ask() {
    printf '\n%s? %s%s\n' "$bold" "$1" "$plain"
    "$lynx" ask "$1" --db "$database" --docs "$docs" --artifact "$artifact" || [ $? -eq 1 ]
}
ask "Which three stores were opened first? Give store name and opening date, oldest first."
ask "How many orders were sold on the marketplace?"
ask "How many customers are Gold members of the loyalty programme?"
printf '\nThe command is %s; activate its environment, or call it by this path.\n' "$lynx"
