package redisbuffer

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// address is where a buffer lives, and its options.
type address struct {
	// places are the server; or Sentinels, or nodes of a cluster, of which one has to answer.
	places []string
	// sentinel is the name of the master that the places are asked for, if they are Sentinels.
	sentinel string
	// isCluster: each of the places knows which one has a bucket.
	isCluster bool
	isSecured bool
	caFile    string
	// authorities are those that a server's certificate has to come from; nil are those that the system trusts.
	authorities *x509.CertPool
	user        string
	password    string
	database    int
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
	scheme := "redis"
	if a.isSecured {
		scheme = "rediss"
	}
	return fmt.Sprintf("%s://%s/%d?bucket=%s", scheme, strings.Join(a.places, ","), a.database, a.bucket)
}

func parseAddress(text string) (address, error) {
	parsed := address{
		bucket: "windrow", lease: 15 * time.Second, patience: 10 * time.Second, answerLimit: 5 * time.Second,
		maxBytes: 256 << 20,
	}
	rest, isRedis := strings.CutPrefix(text, "redis://")
	if !isRedis {
		if rest, parsed.isSecured = strings.CutPrefix(text, "rediss://"); !parsed.isSecured {
			return parsed, errors.New("a Redis buffer is named as redis://host:port/db?bucket=name")
		}
	}
	rest, options, _ := strings.Cut(rest, "?")
	authority, database, _ := strings.Cut(rest, "/")
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		if err := parsed.setAccount(authority[:at]); err != nil {
			return parsed, err
		}
		authority = authority[at+1:]
	}
	if database != "" {
		number, err := strconv.Atoi(database)
		if err != nil || number < 0 {
			return parsed, noNumber("the database's number")
		}
		parsed.database = number
	}
	if err := parsed.setOptions(options); err != nil {
		return parsed, err
	}
	for place := range strings.SplitSeq(authority, ",") {
		if err := parsed.addPlace(place); err != nil {
			return parsed, err
		}
	}
	if err := parsed.check(); err != nil || parsed.caFile == "" {
		return parsed, err
	}
	var err error
	parsed.authorities, err = authoritiesIn(parsed.caFile)
	return parsed, err
}

func (a *address) check() error {
	switch {
	case a.sentinel != "" && a.isCluster:
		return errors.New("the hosts of a Redis buffer are Sentinels or a cluster, not both")
	case len(a.places) > 1 && a.sentinel == "" && !a.isCluster:
		return errors.New("several hosts of a Redis buffer are Sentinels (&sentinel=<name of the master>) or nodes of a " +
			"cluster (&cluster=true)")
	case a.isCluster && a.database != 0:
		return errors.New("a cluster of Redis has database 0 alone")
	case a.caFile != "" && !a.isSecured:
		return errors.New("ca_file of the Redis buffer is for rediss://")
	}
	return nil
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

func (a *address) addPlace(place string) error {
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
		if a.sentinel != "" {
			port = "26379"
		}
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return noNumber("the port")
	}
	a.places = append(a.places, net.JoinHostPort(host, port))
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
	case "sentinel":
		if a.sentinel = value; value == "" {
			return errors.New("sentinel wants the name of a master: ?sentinel=mymaster")
		}
	case "cluster":
		if a.isCluster = value == "true"; !a.isCluster {
			return errors.New("cluster of the Redis buffer is true, or left out")
		}
	case "ca_file":
		a.caFile = value
	default:
		if strings.Contains(name+value, "@") {
			name = "of this name"
		}
		return fmt.Errorf("a Redis buffer has no option %s; it has bucket, lease, patience, answer_limit, max_bytes, "+
			"sentinel, cluster, ca_file", name)
	}
	return err
}

func authoritiesIn(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate", file)
	}
	return authorities, nil
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
