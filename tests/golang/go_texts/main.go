// Says what Go's packages make of texts and numbers: one JSON value a line on standard input, one answer a line.
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/mail"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"time"
)

func problem(_ any, err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func ofText(text string) map[string]string {
	duration, err := time.ParseDuration(text)
	printed := duration.String()
	if err != nil {
		printed = err.Error()
	}
	var tree any
	_, isMail := mail.ParseAddress(text)
	return map[string]string{
		"address":  problem(netip.ParseAddr(text)),
		"base64":   problem(base64.StdEncoding.DecodeString(text)),
		"duration": printed,
		"int":      problem(strconv.ParseInt(text, 10, 64)),
		"json":     problem(nil, json.Unmarshal([]byte(text), &tree)),
		"mail":     strconv.FormatBool(isMail == nil),
		"prefix":   problem(netip.ParsePrefix(text)),
		"quoted":   strconv.Quote(text),
		"uint":     problem(strconv.ParseUint(text, 10, 64)),
		"uri":      problem(url.ParseRequestURI(text)),
		"url":      problem(url.Parse(text)),
	}
}

func ofNumber(number float64) map[string]string {
	encoded, _ := json.Marshal(number)
	return map[string]string{"formatted": fmt.Sprintf("%v", number), "encoded": string(encoded)}
}

func main() {
	questions := json.NewDecoder(bufio.NewReader(os.Stdin))
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	answers := json.NewEncoder(out)
	for {
		var asked any
		if questions.Decode(&asked) != nil {
			return
		}
		if number, ok := asked.(float64); ok {
			answers.Encode(ofNumber(number))
		} else {
			answers.Encode(ofText(asked.(string)))
		}
	}
}
