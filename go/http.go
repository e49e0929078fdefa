package windrow

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
)

// HTTPStore sends batches over ClickHouse's HTTP interface, to ClickHouse itself or to Windrow.
type HTTPStore struct {
	// Client makes the requests. HTTP gives one of its own; it may be replaced before the first writer is
	// opened.
	Client *http.Client

	url      url.URL
	user     string
	password string
	database string
}

// maxAnswerBytes bounds what is read of an answer: a description of a table, or an error's text.
const maxAnswerBytes = 16 << 20

// HTTP gives a store from an address: http[s]://[user[:password]@]host[:port][/database].
func HTTP(address string) (*HTTPStore, error) {
	parsed, err := url.Parse(address)
	// The error of url.Parse shows the address, and with it the password.
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return nil, errors.New("windrow: an address has the form http[s]://[user[:password]@]host[:port][/database]")
	}
	store := &HTTPStore{url: url.URL{Scheme: parsed.Scheme, Host: parsed.Host, Path: "/"}}
	store.user = parsed.User.Username()
	store.password, _ = parsed.User.Password()
	store.database = strings.Trim(parsed.Path, "/")
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 16
	store.Client = &http.Client{Transport: transport}
	return store, nil
}

// String gives the address without the password.
func (s *HTTPStore) String() string { return s.url.Scheme + "://" + s.url.Host + "/" + s.database }

// Close closes the connections that nobody uses.
func (s *HTTPStore) Close() { s.Client.CloseIdleConnections() }

// Describe asks for the table's columns, and for its window of deduplication.
func (s *HTTPStore) Describe(ctx context.Context, table string, columns []string) (Table, error) {
	database, name := SplitTable(table)
	parameters := map[string]string{"param_d": database, "param_t": name}
	answer, err := s.call(ctx, ColumnsQuery+" FORMAT RowBinary", parameters, nil)
	if err != nil {
		return Table{}, err
	}
	described, err := readColumns(answer)
	if err != nil {
		return Table{}, err
	}
	destination, err := Choose(table, described, columns)
	if err != nil {
		return Table{}, err
	}
	// Windrow knows repeats by itself; where the answer can't be had, nothing is said.
	window, err := s.call(ctx, WindowQuery+" FORMAT TSV", parameters, nil)
	deduplicates := err != nil || strings.TrimSpace(string(window)) != "0"
	return Table{Destination: destination, Deduplicates: deduplicates}, nil
}

func readColumns(answer []byte) ([]Column, error) {
	var described []Column
	for len(answer) > 0 {
		var texts [4]string
		for index := range texts {
			length, size := binary.Uvarint(answer)
			if size <= 0 || length > uint64(len(answer)-size) {
				return nil, errors.New("windrow: the table's columns can't be read")
			}
			texts[index] = string(answer[size : size+int(length)])
			answer = answer[size+int(length):]
		}
		described = append(described, Column{texts[0], texts[1], texts[2], texts[3]})
	}
	return described, nil
}

// Insert sends the batch as RowBinaryWithNamesAndTypes: its bytes go out as they were encoded.
func (s *HTTPStore) Insert(ctx context.Context, batch Batch) error {
	body := newSentBody(batch.Destination.Header(), batch.Rows.Bytes)
	_, err := s.call(ctx, batch.Destination.InsertStatement(), batch.InsertSettings(), body)
	body.wait()
	return err
}

// call sends a statement; without a body the statement is the body.
func (s *HTTPStore) call(ctx context.Context, statement string, parameters map[string]string, body *sentBody) ([]byte, error) {
	query := url.Values{}
	for name, value := range parameters {
		query.Set(name, value)
	}
	if s.database != "" {
		query.Set("database", s.database)
	}
	target := s.url
	var reader io.Reader = strings.NewReader(statement)
	if body != nil {
		query.Set("query", statement)
		reader = body
	}
	target.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), reader)
	if err != nil {
		body.abandon()
		return nil, err
	}
	if body != nil {
		request.ContentLength = body.length
	}
	if s.user != "" {
		request.Header.Set("X-ClickHouse-User", s.user)
		request.Header.Set("X-ClickHouse-Key", s.password)
	}
	return s.answer(request)
}

func (s *HTTPStore) answer(request *http.Request) ([]byte, error) {
	response, err := s.Client.Do(request)
	if err != nil {
		return nil, withoutAddress(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return nil, err
	}
	code := response.Header.Get("X-ClickHouse-Exception-Code")
	if response.StatusCode == http.StatusOK && code == "" {
		return answer, nil
	}
	if exception := exceptionOf(code, answer); exception != nil {
		return nil, exception
	}
	return nil, fmt.Errorf("windrow: the server answers %s", response.Status)
}

// withoutAddress takes the statement out of an error: a URL of many settings hides what went wrong.
func withoutAddress(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

// exceptionOf reads an error's body. It gives nil for an answer that is not ClickHouse's, but of something in
// between: that says nothing of what ClickHouse did.
func exceptionOf(codeField string, body []byte) *Exception {
	text := strings.TrimRight(string(body), "\r\n")
	if rest, isException := strings.CutPrefix(text, "Code: "); isException {
		codeField, _, _ = strings.Cut(rest, ".")
	}
	code, err := strconv.Atoi(codeField)
	if err != nil {
		return nil
	}
	return &Exception{Code: code, Text: text}
}

// sentBody is the body of an insert. net/http may still read it when the answer is there; its memory is used
// again only after that.
type sentBody struct {
	io.Reader
	length int64
	once   sync.Once
	closed chan struct{}
}

func newSentBody(header, rows []byte) *sentBody {
	reader := io.MultiReader(bytes.NewReader(header), bytes.NewReader(rows))
	return &sentBody{Reader: reader, length: int64(len(header) + len(rows)), closed: make(chan struct{})}
}

// Close is called by net/http when it has done with the body.
func (b *sentBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return nil
}

func (b *sentBody) wait() { <-b.closed }

// abandon is for a body that net/http never saw.
func (b *sentBody) abandon() {
	if b != nil {
		_ = b.Close()
	}
}
