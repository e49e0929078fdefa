-- One entry. KEYS: lane, rows, bucket's bytes, batches. ARGV: owner, bucket's limit in bytes, first row's number, rows, entry; of one
-- that is written again, also the id and members of the batch that it is: whoever takes the lane over finds both or neither.
-- The lane's 'next' makes it happen once: what is below was applied by an earlier attempt, what is above comes behind one
-- that was not, and is not taken either.
local lane = redis.call('HMGET', KEYS[1], 'owner', 'next')
if lane[1] ~= ARGV[1] then return {'LOST', lane[1] or '', lane[2] or ''} end
local first = tonumber(ARGV[3])
local next_row = tonumber(lane[2])
if first < next_row then return {'OK'} end
if first > next_row then return {'GAP'} end
local size = #ARGV[5]
local used = tonumber(redis.call('GET', KEYS[3]) or '0')
if used > 0 and used + size > tonumber(ARGV[2]) then return {'FULL'} end
redis.call('HSET', KEYS[2], ARGV[3] .. ':' .. ARGV[4], ARGV[5])
if ARGV[6] then redis.call('HSET', KEYS[4], ARGV[6], ARGV[7]) end
redis.call('HSET', KEYS[1], 'next', string.format('%.0f', first + tonumber(ARGV[4])))
redis.call('HINCRBY', KEYS[1], 'bytes', size)
redis.call('INCRBY', KEYS[3], size)
return {'OK'}
