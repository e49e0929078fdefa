package redisbuffer

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
)

// Redis's protocol (RESP 2) as far as the buffer speaks it.

// These are more than Redis itself allows, or than the buffer asks for.
const (
	maxBulkBytes  = 512 << 20
	maxArrayItems = 16 << 20
	maxDepth      = 8
)

var errGarbled = errors.New("bytes that no Redis sends")

// refusal is an error that Redis answers.
type refusal string

func (r refusal) Error() string { return string(r) }

// A reply is a string of bytes, a number (int64), nil, a refusal, or a list ([]any) of such.

func appendHead(out []byte, parts int) []byte { return appendNumber(out, '*', parts) }

func appendPart[T string | []byte](out []byte, part T) []byte {
	out = appendNumber(out, '$', len(part))
	return append(append(out, part...), "\r\n"...)
}

func appendNumber(out []byte, sign byte, number int) []byte {
	out = strconv.AppendInt(append(out, sign), int64(number), 10)
	return append(out, "\r\n"...)
}

func appendCommand(out []byte, parts ...string) []byte {
	out = appendHead(out, len(parts))
	for _, part := range parts {
		out = appendPart(out, part)
	}
	return out
}

// readReply reads one reply. Errors inside of a list stay where they are: a pipeline's other replies are
// still good.
func readReply(from *bufio.Reader, depth int) (any, error) {
	line, err := from.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, errGarbled
	}
	if err != nil {
		return nil, err
	}
	line, hasEnd := bytes.CutSuffix(line, []byte("\r\n"))
	if !hasEnd || len(line) == 0 || depth > maxDepth {
		return nil, errGarbled
	}
	switch rest := string(line[1:]); line[0] {
	case '+':
		return []byte(rest), nil
	case '-':
		return refusal(rest), nil
	case ':':
		return parsedNumber(rest)
	case '$':
		return readBulk(from, rest)
	case '*':
		return readList(from, rest, depth)
	}
	return nil, errGarbled
}

func parsedNumber(text string) (any, error) {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, errGarbled
	}
	return number, nil
}

func readBulk(from *bufio.Reader, text string) (any, error) {
	length, err := strconv.Atoi(text)
	if err != nil || length < -1 || length > maxBulkBytes {
		return nil, errGarbled
	}
	if length == -1 {
		return nil, nil
	}
	// What is said to come is taken in pieces: nothing is allocated for what never does.
	var bulk bytes.Buffer
	if _, err := io.CopyN(&bulk, from, int64(length)+2); err != nil {
		return nil, err
	}
	bytes, hasEnd := bytes.CutSuffix(bulk.Bytes(), []byte("\r\n"))
	if !hasEnd {
		return nil, errGarbled
	}
	return bytes, nil
}

func readList(from *bufio.Reader, text string, depth int) (any, error) {
	count, err := strconv.Atoi(text)
	if err != nil || count < -1 || count > maxArrayItems {
		return nil, errGarbled
	}
	if count == -1 {
		return nil, nil
	}
	items := make([]any, 0, min(count, 1024))
	for range count {
		item, err := readReply(from, depth+1)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// textOf gives a reply's text, or none.
func textOf(reply any) string {
	text, _ := reply.([]byte)
	return string(text)
}
