// Says what Go's regexp package makes of expressions: one JSON object a line on standard input, one answer a line.
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"regexp"
)

type question struct {
	Expression string   `json:"expression"`
	Texts      []string `json:"texts"`
}

type answer struct {
	Problem string     `json:"problem"`
	Matches []bool     `json:"matches"`
	Found   [][]string `json:"found"`
}

func main() {
	questions := json.NewDecoder(bufio.NewReader(os.Stdin))
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	answers := json.NewEncoder(out)
	for {
		var asked question
		if questions.Decode(&asked) != nil {
			return
		}
		said := answer{}
		compiled, err := regexp.Compile(asked.Expression)
		if err != nil {
			said.Problem = err.Error()
		} else {
			for _, text := range asked.Texts {
				found := compiled.FindAllString(text, -1)
				if found == nil {
					found = []string{}
				}
				said.Matches = append(said.Matches, compiled.MatchString(text))
				said.Found = append(said.Found, found)
			}
		}
		if answers.Encode(said) != nil {
			return
		}
	}
}
