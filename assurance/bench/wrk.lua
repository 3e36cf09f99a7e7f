-- Script of wrk: reads the request from environment variables, and prints the measurements as one line of JSON.
local function setting(name) return os.getenv("BENCH_" .. name) end

wrk.method = setting("METHOD")
wrk.body = setting("BODY")
if setting("KEY") then wrk.headers["Authorization"] = "Bearer " .. setting("KEY") end
local isMixed = wrk.body and wrk.method == "GET"
if wrk.body and not isMixed then wrk.headers["Content-Type"] = "application/json" end

-- In the path, "{id}" becomes a random id and "{page}" the cursor of a random id. Of a GET with a body, each
-- tenth request is a POST.
local path = setting("PATH")
wrk.path = path
local digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
local count, animals = 0, tonumber(setting("ANIMALS"))
local before, name, after = path:match("^(.*){(%a+)}(.*)$")
math.randomseed(tonumber(setting("SEED")))

-- The last 30 bits of a cursor are five characters.
local function cursor(id)
  local text = ""
  for _ = 1, 5 do
    local digit = id % 64 + 1
    text = digits:sub(digit, digit) .. text
    id = math.floor(id / 64)
  end
  return "AQAAAAA" .. text
end

local values = {
  id = function() return math.random(animals) end,
  page = function() return cursor(math.random(animals)) end,
}

if before then
  function request() return wrk.format(nil, before .. values[name]() .. after) end
elseif isMixed then
  local body, headers = wrk.body, { ["Content-Type"] = "application/json" }
  for header, value in pairs(wrk.headers) do headers[header] = value end
  wrk.body = nil
  function request()
    count = count + 1
    if count % 10 == 0 then return wrk.format("POST", path, headers, body) end
    return wrk.format()
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
