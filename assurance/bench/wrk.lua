-- Script of wrk: reads the request from environment variables, and prints the measurements as one line of JSON.
local function setting(name) return os.getenv("BENCH_" .. name) end

wrk.method = setting("METHOD")
wrk.body = setting("BODY")
if setting("KEY") then wrk.headers["Authorization"] = "Bearer " .. setting("KEY") end
if wrk.body then wrk.headers["Content-Type"] = "application/json" end

-- "{cursor}" in the path becomes the next cursor: its last 30 bits, five characters, count up.
local path = setting("PATH")
wrk.path = path
local digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
local count = tonumber(setting("FIRST_CURSOR"))
local before, after = path:match("^(.*){cursor}(.*)$")

if before then
  function request()
    count = count + 1
    local rest, text = count, ""
    for _ = 1, 5 do
      local digit = rest % 64 + 1
      text = digits:sub(digit, digit) .. text
      rest = math.floor(rest / 64)
    end
    return wrk.format(nil, before .. "AQAAAAA" .. text .. after)
  end
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests":%d,"microseconds":%d,"p50":%d,"p99":%d,"refused":%d,"broken":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.status, errors.connect + errors.read + errors.write + errors.timeout
  ))
end
