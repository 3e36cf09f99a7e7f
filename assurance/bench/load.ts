// Generates load and measures it: with wrk if it is installed, else with autocannon.
import { fileURLToPath } from 'node:url'
import { type Core, has, outputOn } from './placement.ts'
import { ANIMALS } from './rows.ts'

export interface Shot {
  /** The address without a path, such as http://127.0.0.1:8080. */
  base: string
  method: 'GET' | 'POST'
  /** With the placeholders of `Work` (rows.ts), and its rule for a body. */
  path: string
  key: string | undefined
  body: string | undefined
  seconds: number
  connections: number
  /** The core that generates the load. Default: `load`. */
  core?: Core
}

export interface Measured {
  requests: number
  perSecond: number
  /** Latencies, in microseconds. */
  p50: number
  p99: number
  /** The number of answers with a status of 400 and above, and of requests without an answer. */
  refused: number
  broken: number
}

export const CONNECTIONS = 32
export const PEERS = new URL('peers/', import.meta.url)

/** Cursors count up from here, far above the ids of the animals; each shot gets its own range. */
let nextCursor = 2_000_000
const CURSORS_A_SHOT = 300_000

const GENERATORS = { wrk: shootWithWrk, autocannon: shootWithAutocannon }
export const GENERATOR: keyof typeof GENERATORS = has('wrk') ? 'wrk' : 'autocannon'

export async function shoot(shot: Shot): Promise<Measured> {
  nextCursor += CURSORS_A_SHOT
  const measured = await GENERATORS[GENERATOR](shot, nextCursor)
  if (measured.broken > 0) throw new Error(`${measured.broken} requests of ${shot.method} ${shot.path} had no answer`)
  return measured
}

/** The line that wrk.lua prints. */
interface WrkResult extends Omit<Measured, 'perSecond'> {
  microseconds: number
}

async function shootWithWrk(
  { base, method, path, key, body, seconds, connections, core = 'load' }: Shot,
  firstCursor: number,
): Promise<Measured> {
  const script = fileURLToPath(new URL('wrk.lua', import.meta.url))
  const text = await outputOn(core, 'wrk', ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', script, base], {
    env: {
      BENCH_METHOD: method,
      BENCH_PATH: path,
      BENCH_KEY: key,
      BENCH_BODY: body,
      BENCH_FIRST_CURSOR: String(firstCursor),
      BENCH_ANIMALS: String(ANIMALS),
    },
  })
  const { microseconds, ...rest } = JSON.parse(text.trim().split('\n').at(-1)!) as WrkResult
  return { perSecond: (rest.requests / microseconds) * 1e6, ...rest }
}

async function shootWithAutocannon(shot: Shot, firstCursor: number): Promise<Measured> {
  const script = fileURLToPath(new URL('autocannon.js', PEERS))
  const text = await outputOn(shot.core ?? 'load', process.execPath, [
    script,
    JSON.stringify({ ...shot, firstCursor, animals: ANIMALS }),
  ])
  return JSON.parse(text) as Measured
}
