package redisbuffer

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Whether the process that owns a lane lives still: that is known at once for one that ran beside us, by the
// lease for others.

// ownIdentity is this process: machine since its boot, namespace of process numbers, number, and when it
// started. A number is given out again in time, and each container counts from 1: only all four together name
// a process.
func ownIdentity() string {
	pid := os.Getpid()
	place := placeOfProcesses()
	if place == "" {
		place = "elsewhere"
	}
	return fmt.Sprintf("%s/%d/%s", place, pid, startTime(pid))
}

// isDead says so only when it is certain.
func isDead(identity string) bool {
	last := strings.LastIndex(identity, "/")
	if last < 0 {
		return false
	}
	started := identity[last+1:]
	before := strings.LastIndex(identity[:last], "/")
	if before < 0 {
		return false
	}
	pid, err := strconv.Atoi(identity[before+1 : last])
	place := placeOfProcesses()
	if err != nil || place == "" || place != identity[:before] || started == "" {
		return false
	}
	return startTime(pid) != started
}

func placeOfProcesses() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + "/" + namespace
}

// startTime is the start in ticks since the boot. It is empty also for a process that has ended and waits for
// its parent to notice.
func startTime(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The name in parentheses may hold anything, so fields are counted from its end.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return ""
	}
	return fields[19]
}
