-- The lanes of a bucket. KEYS: lanes. ARGV: what a lane's key begins with. Answers name, ms left of the lease, owner, process,
-- destination of each.
local now = redis.call('TIME')
local now_ms = now[1] * 1000 + math.floor(now[2] / 1000)
local answer = {}
for at, item in ipairs(redis.call('ZRANGE', KEYS[1], 0, 999, 'WITHSCORES')) do
  if at % 2 == 1 then
    answer[#answer + 1] = item
  else
    local lane = redis.call('HMGET', ARGV[1] .. answer[#answer], 'owner', 'process', 'destination')
    answer[#answer + 1] = string.format('%.0f', tonumber(item) - now_ms)
    answer[#answer + 1] = lane[1] or ''
    answer[#answer + 1] = lane[2] or ''
    answer[#answer + 1] = lane[3] or ''
  end
end
return answer
