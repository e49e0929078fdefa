package diskbuffer

// location is where a record stands.
type location struct {
	segment uint64
	offset  int64
}

// group is rows one after the other; the first of them is in the record at place or in one that follows it.
type group struct {
	place location
	first uint64
	rows  uint64
	bytes int64
}

func (g group) end() uint64 { return g.first + g.rows }

// groups are rows that wait, grouped as they will be sealed.
type groups struct {
	limits limits
	// waiting: the last one may still grow, unless it is full.
	waiting    []group
	isLastFull bool
	rows       uint64
}

func (g *groups) full() uint64 {
	if g.isLastFull || len(g.waiting) == 0 {
		return uint64(len(g.waiting))
	}
	return uint64(len(g.waiting) - 1)
}

// push adds rows behind the others. It says whether a group has become full by them.
func (g *groups) push(added group) bool {
	fullBefore := g.full()
	g.rows += added.rows
	if last := len(g.waiting) - 1; last >= 0 && g.fits(g.waiting[last], added) {
		g.waiting[last].rows += added.rows
		g.waiting[last].bytes += added.bytes
	} else {
		g.waiting = append(g.waiting, added)
	}
	last := g.waiting[len(g.waiting)-1]
	g.isLastFull = last.rows >= uint64(g.limits.batchRows) || last.bytes >= int64(g.limits.batchBytes)
	return g.full() > fullBefore
}

func (g *groups) fits(last, added group) bool {
	return !g.isLastFull && last.end() == added.first && last.rows+added.rows <= uint64(g.limits.batchRows) &&
		last.bytes+added.bytes <= int64(g.limits.batchBytes)
}

func (g *groups) pop() (group, bool) {
	if len(g.waiting) == 0 {
		return group{}, false
	}
	popped := g.waiting[0]
	g.waiting = append(g.waiting[:0], g.waiting[1:]...)
	g.rows -= popped.rows
	g.isLastFull = g.isLastFull && len(g.waiting) > 0
	return popped, true
}

// putBack is for one that could not be sealed.
func (g *groups) putBack(popped group) {
	g.isLastFull = g.isLastFull || len(g.waiting) == 0
	g.rows += popped.rows
	g.waiting = append([]group{popped}, g.waiting...)
}

// A run ends at so many rows or bytes: what is kept in memory of a large log is small even so.
const (
	runRows  = 1024
	runBytes = 1 << 20
)

// runs are rows that were found in a dead writer's segments: in each the positions follow each other, in one
// segment.
type runs []group

func (r *runs) push(place location, header recordHeader) {
	added := group{place, header.position, uint64(header.rows), int64(header.payloadBytes) - 4*int64(header.rows)}
	if count := len(*r); count > 0 {
		last := &(*r)[count-1]
		if last.place.segment == place.segment && last.end() == added.first && last.rows+added.rows <= runRows &&
			last.bytes+added.bytes <= runBytes {
			last.rows += added.rows
			last.bytes += added.bytes
			return
		}
	}
	*r = append(*r, added)
}
