package redisbuffer

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// address is where a buffer lives, and its options.
type address struct {
	place    string
	user     string
	password string
	database int
	// bucket: writers that name the same one look after each other's rows.
	bucket string
	// lease is how long a process may be silent before another takes over what it left.
	lease time.Duration
	// patience is how long a write waits for a Redis that is away, or has no room, before it fails.
	patience time.Duration
	// answerLimit is how long Redis may be silent before the connection is given up and made again.
	answerLimit time.Duration
	// maxBytes bounds the rows that all writers of the bucket together may have in Redis.
	maxBytes int64
}

// String leaves out the password: an address is logged and shown.
func (a address) String() string {
	return fmt.Sprintf("redis://%s/%d?bucket=%s", a.place, a.database, a.bucket)
}

func parseAddress(text string) (address, error) {
	parsed := address{
		bucket: "windrow", lease: 15 * time.Second, patience: 10 * time.Second, answerLimit: 5 * time.Second,
		maxBytes: 256 << 20,
	}
	rest, isRedis := strings.CutPrefix(text, "redis://")
	if !isRedis {
		return parsed, wrongScheme(text)
	}
	rest, options, _ := strings.Cut(rest, "?")
	authority, database, _ := strings.Cut(rest, "/")
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		if err := parsed.setAccount(authority[:at]); err != nil {
			return parsed, err
		}
		authority = authority[at+1:]
	}
	if err := parsed.setPlace(authority); err != nil {
		return parsed, err
	}
	if database != "" {
		number, err := strconv.Atoi(database)
		if err != nil || number < 0 {
			return parsed, noNumber("the database's number")
		}
		parsed.database = number
	}
	return parsed, parsed.setOptions(options)
}

func wrongScheme(text string) error {
	if strings.HasPrefix(text, "rediss://") {
		return errors.New("rediss:// is not supported: put a TLS proxy beside the program and name it with redis://")
	}
	return errors.New("a Redis buffer is named as redis://host:port/db?bucket=name")
}

// noNumber doesn't show the text: where a password isn't written as an address wants it, a part of it stands
// here.
func noNumber(what string) error {
	return fmt.Errorf("%s of the Redis buffer is not a number (in a password, write /, ?, # and @ as %%2F ...)", what)
}

func (a *address) setAccount(account string) error {
	user, password, hasUser := strings.Cut(account, ":")
	if !hasUser {
		user, password = "", account
	}
	var err error
	if a.user, err = decoded(user); err == nil {
		a.password, err = decoded(password)
	}
	return err
}

func decoded(text string) (string, error) {
	plain, err := url.PathUnescape(text)
	if err != nil {
		return "", errors.New("a percent sign in the Redis buffer's address is not followed by two digits")
	}
	return plain, nil
}

func (a *address) setPlace(place string) error {
	host, port := place, ""
	if inside, isBracketed := strings.CutPrefix(place, "["); isBracketed {
		host, port, _ = strings.Cut(inside, "]")
		port = strings.TrimPrefix(port, ":")
	} else {
		host, port, _ = strings.Cut(place, ":")
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if port == "" {
		port = "6379"
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return noNumber("the port")
	}
	a.place = net.JoinHostPort(host, port)
	return nil
}

func (a *address) setOptions(options string) error {
	for option := range strings.SplitSeq(options, "&") {
		if option == "" {
			continue
		}
		name, text, _ := strings.Cut(option, "=")
		value, err := decoded(text)
		if err == nil {
			err = a.set(name, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *address) set(name, value string) (err error) {
	switch name {
	case "bucket":
		// Braces would cut the part of the keys that Redis Cluster places them by.
		if value == "" || strings.ContainsAny(value, "{}") {
			return errors.New("the bucket needs a name without braces: ?bucket=name")
		}
		a.bucket = value
	case "lease":
		a.lease, err = seconds(name, value)
	case "patience":
		a.patience, err = seconds(name, value)
	case "answer_limit":
		a.answerLimit, err = seconds(name, value)
	case "max_bytes":
		if a.maxBytes, err = strconv.ParseInt(value, 10, 64); err != nil || a.maxBytes < 0 {
			return noNumber(name)
		}
	default:
		if strings.Contains(name+value, "@") {
			name = "of this name"
		}
		return fmt.Errorf("a Redis buffer has no option %s; it has bucket, lease, patience, answer_limit, max_bytes", name)
	}
	return err
}

func seconds(name, text string) (time.Duration, error) {
	number, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, noNumber(name)
	}
	if !(number >= 0.05 && number <= 86_400) {
		return 0, fmt.Errorf("%s of the Redis buffer has to lie between 0.05 and 86400 seconds", name)
	}
	return time.Duration(number * float64(time.Second)), nil
}
