// Loaded into an instance by --import: keeps the longest turns of its event loop, and writes them to the file TURNS at each SIGUSR2.
import { writeFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'

const delay = monitorEventLoopDelay({ resolution: 1 })
delay.enable()

/** Of the processor, which other work on the machine hardly changes. */
let [longestMs, before] = [0, process.threadCpuUsage()]
setInterval(() => {
  const now = process.threadCpuUsage()
  longestMs = Math.max(longestMs, (now.user - before.user + now.system - before.system) / 1000)
  before = now
}, 1).unref()

let measurement = 0
process.on('SIGUSR2', () => {
  measurement += 1
  writeFileSync(process.env['TURNS']!, JSON.stringify({ measurement, cpuMs: longestMs, wallMs: delay.max / 1e6 }))
  longestMs = 0
  delay.reset()
})
