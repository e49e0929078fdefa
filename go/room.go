package windrow

import (
	"context"
	"errors"
)

// reserve takes room, before anything else. The order matters: a writer that is closed after this still waits
// for the room to be given back.
func (c *core) reserve(bytes int64) error {
	for {
		held := c.held.Load()
		switch {
		case bytes > c.options.MaxBytes:
			return &TooLargeError{Bytes: bytes, MaxBytes: c.options.MaxBytes}
		case c.closed.Load():
			return ErrClosed
		case held+bytes > c.options.MaxBytes:
			return ErrFull
		}
		if c.held.CompareAndSwap(held, held+bytes) {
			break
		}
	}
	if c.closed.Load() {
		c.giveBack(bytes)
		return ErrClosed
	}
	return nil
}

// giveBack is for room that was not used after all.
func (c *core) giveBack(bytes int64) {
	if left := c.held.Add(-bytes); left == 0 && c.closed.Load() {
		c.wake()
	}
}

// tellRoomLater is for those who found no room because of rows that were not taken after all.
func (c *core) tellRoomLater() {
	c.roomFreed.Store(true)
	c.wake()
}

// free: rows have settled, their room can be had again.
func (c *core) free(rows Positions, heldBytes int64) {
	c.held.Add(-heldBytes)
	c.settled.settle(rows)
	c.tellRoom()
}

func (c *core) tellRoom() {
	if c.roomWanted.Load() > 0 {
		close(c.room)
		c.room = make(chan struct{})
	}
}

func (c *core) roomChannel() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.room
}

// appendBlocking takes rows as soon as there is room, and returns when they are kept.
func (c *core) appendBlocking(ctx context.Context, rows Rows) error {
	kept, err := c.appendWatched(rows)
	if errors.Is(err, ErrFull) {
		c.roomWanted.Add(1)
		defer c.roomWanted.Add(-1)
	}
	for errors.Is(err, ErrFull) {
		room := c.roomChannel()
		// Room may have become free before the channel was had.
		if kept, err = c.appendWatched(rows); !errors.Is(err, ErrFull) {
			break
		}
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err != nil || kept == nil {
		return err
	}
	select {
	case err := <-kept:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
