// Generates load and measures it: with wrk if it is installed, else with autocannon.
import { fileURLToPath } from 'node:url'
import { has, outputOn } from './placement.ts'
import { ANIMALS } from './works.ts'

export interface Shot {
  /** The address without a path, such as http://127.0.0.1:8080. */
  base: string
  method: 'GET' | 'POST'
  /** With the placeholders of `Work` (works.ts), and its rule for a body. */
  path: string
  key: string | undefined
  body: string | undefined
  seconds: number
  connections: number
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

const GENERATORS = { wrk: shootWithWrk, autocannon: shootWithAutocannon }
export const GENERATOR: keyof typeof GENERATORS = has('wrk') ? 'wrk' : 'autocannon'

export async function shoot(shot: Shot): Promise<Measured> {
  const measured = await GENERATORS[GENERATOR](shot)
  if (measured.broken > 0) throw new Error(`${measured.broken} requests of ${shot.method} ${shot.path} had no answer`)
  return measured
}

/** The line that wrk.lua prints. */
interface WrkResult extends Omit<Measured, 'perSecond'> {
  microseconds: number
}

async function shootWithWrk({ base, method, path, key, body, seconds, connections }: Shot): Promise<Measured> {
  const script = fileURLToPath(new URL('wrk.lua', import.meta.url))
  const text = await outputOn('load', 'wrk', ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', script, base], {
    env: {
      BENCH_METHOD: method,
      BENCH_PATH: path,
      BENCH_KEY: key,
      BENCH_BODY: body,
      BENCH_SEED: String(Date.now() % 1e9),
      BENCH_ANIMALS: String(ANIMALS),
    },
  })
  const { microseconds, ...rest } = JSON.parse(text.trim().split('\n').at(-1)!) as WrkResult
  return { perSecond: (rest.requests / microseconds) * 1e6, ...rest }
}

async function shootWithAutocannon(shot: Shot): Promise<Measured> {
  const script = fileURLToPath(new URL('autocannon.js', PEERS))
  const text = await outputOn('load', process.execPath, [script, JSON.stringify({ ...shot, animals: ANIMALS })])
  return JSON.parse(text) as Measured
}
