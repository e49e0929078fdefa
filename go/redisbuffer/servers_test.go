package redisbuffer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A Redis behind TLS, one that Sentinel chooses, and one of a cluster. redis-server is run as each of them.

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return port
}

// started runs redis-server until the test ends, and waits until it answers. It gives the port.
func started(t *testing.T, options ...string) string {
	t.Helper()
	port := freePort(t)
	fixed := []string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir()}
	run(t, append(fixed, options...)...)
	eventually(t, "redis-server answers", func() bool {
		return textOf(said(t, port, "PING")) == "PONG"
	})
	return port
}

func run(t *testing.T, arguments ...string) {
	t.Helper()
	command := exec.Command("redis-server", arguments...)
	if err := command.Start(); err != nil {
		t.Fatal("run `make setup-test`: ", err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
}

// said is the answer to one command; nil where nobody gives one.
func said(t *testing.T, port string, parts ...string) any {
	t.Helper()
	read, err := parseAddress("redis://127.0.0.1:" + port)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := read.open(read.places[0], false)
	if err != nil {
		return nil
	}
	defer opened.close()
	answer, _ := opened.ask(parts...)
	return answer
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain: ", what)
		}
	}
}

// reached is the port that a link to the address has come to; the error if it has not.
func reached(t *testing.T, text string) (string, error) {
	t.Helper()
	read, err := parseAddress(text)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := openLink(read)
	if err != nil {
		return "", err
	}
	defer opened.close()
	if _, err := opened.survey(newBucket(read)); err != nil {
		return "", err
	}
	_, port, _ := net.SplitHostPort(opened.connection.RemoteAddr().String())
	return port, nil
}

// certificateIn makes a certificate for 127.0.0.1 that nobody else trusts.
func certificateIn(t *testing.T, folder string) (certificate, key string) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &secret.PublicKey, secret)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, bytes []byte) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", signed), write("key.pem", "EC PRIVATE KEY", encoded)
}

func TestAServerIsReachedOverTLSIfItIsTrusted(t *testing.T) {
	certificate, key := certificateIn(t, t.TempDir())
	other, _ := certificateIn(t, t.TempDir())
	port := freePort(t)
	plain := started(t, "--tls-port", port, "--tls-auth-clients", "no",
		"--tls-cert-file", certificate, "--tls-key-file", key, "--tls-ca-cert-file", certificate)
	found, err := reached(t, "rediss://127.0.0.1:"+port+"/0?ca_file="+certificate)
	if err != nil || found != port {
		t.Fatal(found, err)
	}
	for _, refused := range []string{
		"rediss://127.0.0.1:" + port, "rediss://127.0.0.1:" + port + "/0?ca_file=" + other,
		"rediss://127.0.0.1:" + plain + "/0?answer_limit=1", "redis://127.0.0.1:" + port + "/0?answer_limit=1",
	} {
		if found, err := reached(t, refused); err == nil {
			t.Errorf("%s: %s", refused, found)
		}
	}
}

func TestTheMasterIsTheOneThatSentinelNames(t *testing.T) {
	master := started(t)
	replica := started(t, "--replicaof", "127.0.0.1 "+master)
	folder, port := t.TempDir(), freePort(t)
	config := filepath.Join(folder, "sentinel.conf")
	text := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %s\nsentinel monitor main 127.0.0.1 %s 1\n"+
		"sentinel failover-timeout main 5000\n", port, folder, master)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, config, "--sentinel")
	address := "redis://127.0.0.1:" + freePort(t) + ",127.0.0.1:" + port + "/0?sentinel="
	eventually(t, "Sentinel names the master", func() bool {
		found, err := reached(t, address+"main")
		return err == nil && found == master
	})
	if _, err := reached(t, address+"other"); err == nil || !strings.Contains(err.Error(), "no master called other") {
		t.Fatal(err)
	}
	eventually(t, "Sentinel gives its place to the replica", func() bool {
		said(t, port, "SENTINEL", "FAILOVER", "main")
		found, err := reached(t, address+"main")
		return err == nil && found == replica
	})
}

func TestABucketIsFoundOnItsNode(t *testing.T) {
	nodes := []string{started(t, "--cluster-enabled", "yes"), started(t, "--cluster-enabled", "yes")}
	said(t, nodes[0], "CLUSTER", "ADDSLOTSRANGE", "0", "8191")
	said(t, nodes[1], "CLUSTER", "ADDSLOTSRANGE", "8192", "16383")
	said(t, nodes[0], "CLUSTER", "MEET", "127.0.0.1", nodes[1])
	for _, node := range nodes {
		eventually(t, "the cluster is whole", func() bool {
			return strings.Contains(textOf(said(t, node, "CLUSTER", "INFO")), "cluster_state:ok")
		})
	}
	for number := range 20 {
		name := "b" + strconv.Itoa(number)
		slot, _ := said(t, nodes[0], "CLUSTER", "KEYSLOT", "{windrow:"+name+"}:lanes").(int64)
		for _, node := range nodes {
			found, err := reached(t, "redis://127.0.0.1:"+node+"/?cluster=true&bucket="+name)
			if err != nil || found != nodes[slot/8192] {
				t.Fatal(name, slot, found, err)
			}
		}
	}
}
