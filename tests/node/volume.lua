-- wrk: requests the paths of a file in random order, and prints its counts as JSON.
local requests = {}

init = function(args)
  math.randomseed(os.time())
  for path in io.lines(args[1]) do requests[#requests + 1] = wrk.format("GET", path) end
end

request = function()
  return requests[math.random(#requests)]
end

done = function(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    'JSON {"attempted": %d, "seconds": %.1f, "p50": %.1f, "p99": %.1f, "max": %.1f, "failures": '
      .. '{"connect": %d, "read": %d, "write": %d, "timeout": %d, "status": %d}}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    latency.max / 1e3, errors.connect, errors.read, errors.write, errors.timeout, errors.status))
end
