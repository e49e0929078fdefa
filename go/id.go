package windrow

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
)

// BatchID names a batch for ever: retries, also after a restart, carry the same one. It is a random UUID,
// sent as the insert's deduplication token. Its bytes stand in the order of the text.
type BatchID [16]byte

// NewBatchID makes a new id from the operating system's random numbers.
func NewBatchID() BatchID {
	var id BatchID
	// It never fails: the runtime ends the program where the system has no random numbers.
	_, _ = rand.Read(id[:])
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}

// ParseBatchID reads what String has written.
func ParseBatchID(text string) (BatchID, error) {
	var id BatchID
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return id, fmt.Errorf("windrow: %q is no batch id", text)
	}
	digits := text[:8] + text[9:13] + text[14:18] + text[19:23] + text[24:]
	if _, err := hex.Decode(id[:], []byte(digits)); err != nil {
		return BatchID{}, fmt.Errorf("windrow: %q is no batch id", text)
	}
	return id, nil
}

// String writes the id as a UUID.
func (id BatchID) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
