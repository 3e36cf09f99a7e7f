// The checks that must pass behind every proxy. Each returns its figures and its violations.
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import type { Instance } from '../../test/harness/programs/instance.ts'
import { until } from '../../test/harness/until.ts'
import { type Upload, upload } from './upload.ts'

export interface Scene {
  /** The address of the proxy. */
  url: string
  key: string
  instances: readonly [Instance, Instance]
  /** The paths of the instances' logs, which have the level info. */
  logs: readonly string[]
}

export interface Found {
  figures: string
  violations: string[]
}

const JSON_TYPE = { 'Content-Type': 'application/json' }
const FORM = { 'Content-Type': 'application/x-www-form-urlencoded', Accept: 'text/html' }

const authorized = ({ key }: Scene) => ({ Authorization: `Bearer ${key}` })

/** Requests that are answered before their body is read, each with the start of its answer. */
const EARLY: Record<string, (scene: Scene) => [Omit<Upload, 'bytes'>, answer: string]> = {
  401: () => [{ method: 'POST', path: '/v1/pets', headers: JSON_TYPE }, '401 {"code":"missing_api_key"'],
  404: () => [{ method: 'POST', path: '/v1/nothing', headers: JSON_TYPE }, '404 {"code":"unknown_path"'],
  405: () => [{ method: 'PUT', path: '/v1/pets', headers: JSON_TYPE }, '405 {"code":"method_not_allowed"'],
  413: (scene) => [
    { method: 'POST', path: '/v1/pets', headers: { ...JSON_TYPE, ...authorized(scene) } },
    '413 {"code":"body_too_large"',
  ],
  400: (scene) => [
    { method: 'POST', path: '/v1/pets', headers: { 'Content-Type': 'text/plain', ...authorized(scene) } },
    '400 {"code":"unsupported_content_type"',
  ],
  form: () => [{ method: 'POST', path: '/sign-in', headers: FORM }, '413 <!doctype html>'],
}

/** How long the next client may wait after a refused upload: the proxy must not hold it up with the rest of that body. */
const NEXT_WITHIN_MS = 1500

/** Checks that the client gets the service's answer to a large body refused early, and that the next client does not wait. */
export async function earlyAnswers(scene: Scene, bytes: number, rounds: number): Promise<Found> {
  const violations: string[] = []
  let right = 0
  let slowestNext = 0
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, make] of Object.entries(EARLY)) {
      const [request, expected] = make(scene)
      const got = await upload(scene.url, { ...request, bytes })
      if (got.toLowerCase().startsWith(expected.toLowerCase())) right += 1
      else violations.push(`${name} with ${bytes} bytes: ${got.slice(0, 60)}`)
      const started = performance.now()
      const next = await upload(scene.url, {
        method: 'GET',
        path: '/v1/pets?limit=1',
        headers: authorized(scene),
        bytes: 0,
      })
      const waited = performance.now() - started
      slowestNext = Math.max(slowestNext, waited)
      if (!next.startsWith('200 ') || waited > NEXT_WITHIN_MS)
        violations.push(`the next client after ${name}: ${next.slice(0, 60)} after ${Math.round(waited)} ms`)
    }
  }
  const sent = rounds * Object.keys(EARLY).length
  return {
    figures: `${right} of ${sent} real answers, the next client waited ${Math.round(slowestNext)} ms at most`,
    violations,
  }
}

const REUSED = 60

/** Checks that the proxy reuses its connections to the instances. */
export async function keepAlive(scene: Scene): Promise<Found> {
  const before = connectionsTo(scene.instances)
  for (let count = 0; count < REUSED; count += 1) {
    await upload(scene.url, { method: 'GET', path: '/v1/pets?limit=1', headers: authorized(scene), bytes: 0 })
  }
  const opened = connectionsTo(scene.instances).difference(before).size
  // Allows for the connections of the proxy's health checks.
  const violations = opened > REUSED / 3 ? [`${opened} connections were opened for ${REUSED} requests`] : []
  return { figures: `${REUSED} requests on ${opened} new connections`, violations }
}

/** Returns the client ports of all connections to these instances, including connections just closed. */
function connectionsTo(instances: readonly Instance[]): Set<string> {
  const ports = new Set(instances.map(({ port }) => port.toString(16).toUpperCase().padStart(4, '0')))
  const ends = readFileSync('/proc/net/tcp', 'utf8').matchAll(/ [0-9A-F]{8}:([0-9A-F]{4}) [0-9A-F]{8}:([0-9A-F]{4}) /g)
  return new Set([...ends].flatMap(([, from = '', to = '']) => (ports.has(to) ? [from] : ports.has(from) ? [to] : [])))
}

const LOGGED_WITHIN_MS = 5000

/** Checks that the instance logs the client's real address, not the one that the client claims in a header. */
export async function forwardedAddress(scene: Scene): Promise<Found> {
  const id = randomUUID()
  const headers = {
    ...authorized(scene),
    'Request-Id': id,
    'X-Forwarded-For': '203.0.113.9',
    Forwarded: 'for=203.0.113.9',
  }
  await upload(scene.url, { method: 'GET', path: '/v1/pets?limit=1', headers, bytes: 0 })
  let addresses = ''
  const isLogged = async () => {
    const lines = scene.logs.flatMap((log) => readFileSync(log, 'utf8').split('\n')).filter((line) => line.includes(id))
    addresses = lines.map((line) => (JSON.parse(line) as { address: string }).address).join(' and ')
    return addresses !== ''
  }
  await until(isLogged, 'the request is logged', LOGGED_WITHIN_MS).catch(() => undefined)
  return {
    figures: `the client's address is logged as ${addresses || 'nothing'}`,
    violations: addresses === '127.0.0.2' ? [] : [`logged as ${addresses}`],
  }
}

const CUT_OFF = 5

/** Checks that the proxy does not retry a create whose answer was lost: the animal must be stored once. */
export async function noRepeats(scene: Scene): Promise<Found> {
  const names = new Set<string>()
  const list = () => fetch(`${scene.url}/v1/pets?limit=100`, { headers: authorized(scene) })
  // After a broken connection a proxy may not use the instance for a while.
  const usable = () => until(async () => (await list()).ok, 'the proxy uses an instance again')
  while (names.size < CUT_OFF) {
    await usable()
    const name = randomUUID()
    names.add(name)
    const headers = { ...JSON_TYPE, ...authorized(scene), 'Petstore-Rehearse': 'disconnect-after-commit' }
    await fetch(`${scene.url}/v1/pets`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ name, categoryId: 1 }),
    }).catch(() => undefined)
  }
  await usable()
  const stored = ((await (await list()).json()) as { name: string }[]).filter(({ name }) => names.has(name)).length
  const figures = `${stored} animals for ${CUT_OFF} creates whose answer was lost`
  return { figures, violations: stored === CUT_OFF ? [] : [figures] }
}

const AFTER_LOSS = 30
/** After this time the proxies use an instance again whose connections broke in an earlier check: nginx counts whole seconds, of more than two. */
const SETTLED_MS = 3500

/** Checks that every list is answered with one instance lost, and that the proxy sends an Error body, or a page to browsers, with both lost. */
export async function lostInstances(scene: Scene, lose: (instance: Instance) => Promise<void>): Promise<Found> {
  const violations: string[] = []
  await setTimeout(SETTLED_MS)
  await lose(scene.instances[0])
  for (let count = 0; count < AFTER_LOSS; count += 1) {
    const { status } = await fetch(`${scene.url}/v1/pets?limit=1`, { headers: authorized(scene) })
    if (status !== 200) violations.push(`${status} with one instance left`)
  }
  const served = AFTER_LOSS - violations.length
  await lose(scene.instances[1])
  const response = await fetch(`${scene.url}/v1/pets?limit=1`, { headers: authorized(scene) })
  const text = await response.text()
  if (
    response.status < 502 ||
    response.headers.get('retry-after') === null ||
    !text.includes('"code":"service_unavailable"')
  ) {
    violations.push(`with no instance left: ${response.status} ${text.slice(0, 60)}`)
  }
  const html = { Accept: 'text/html,*/*;q=0.8' }
  for (const [path, start] of [
    ['/keys', '<!doctype html>'],
    ['/v1/pets', '{"code":'],
  ] as const) {
    const shown = await fetch(scene.url + path, { headers: html })
    const body = await shown.text()
    if (shown.status < 502 || !body.startsWith(start))
      violations.push(`${path} to a browser: ${shown.status} ${body.slice(0, 60)}`)
  }
  return { figures: `${served} of ${AFTER_LOSS} answered with one instance, then ${response.status}`, violations }
}
