// petstore mcp: connects an agent that can only start a program (MCP over stdio) to a service: a message a line, each way.
import type { Readable } from 'node:stream'
import { Problem } from '../contract/errors.ts'
import { parseJson } from '../contract/json.ts'
import { type Command, UsageError } from './command.ts'
import { print, report, type Terminal } from './terminal.ts'

const KEY_VARIABLE = 'PETSTORE_API_KEY'
const TIMEOUT_MS = 60_000
/** How many requests run at a time: a service limits connections. */
const MOST_AT_ONCE = 16

export const mcp: Command = {
  name: 'mcp',
  summary: 'Connect an agent that starts programs (Model Context Protocol, stdio) to a service',
  takes: [],
  options: {
    url: {
      value: 'ADDRESS',
      meaning: 'Address of the service, such as https://petstore.example',
      notes: `The API key is read from ${KEY_VARIABLE}`,
    },
  },
  examples: ['petstore mcp --url http://127.0.0.1:8080'],
  async run({ terminal, flags }) {
    const url = parseUrl(flags['url'])
    const { [KEY_VARIABLE]: key = terminal.envFile.variables[KEY_VARIABLE] } = terminal.env
    if (!key) throw new UsageError(`Set ${KEY_VARIABLE} to an API key.`)
    const running = new Set<Promise<void>>()
    for await (const line of linesOf(terminal.stdin)) {
      if (line.trim() === '') continue
      if (running.size >= MOST_AT_ONCE) await Promise.race(running)
      const answered = forward(terminal, url, key, line).finally(() => running.delete(answered))
      running.add(answered)
    }
    await Promise.all(running)
  },
}

function parseUrl(text = ''): string {
  const { protocol, username, password, origin, pathname } = URL.parse(text) ?? {}
  if (/^https?:$/.test(protocol ?? '') && !username && !password)
    return origin + pathname!.replace(/\/(?:v1|mcp)?\/?$/, '') + '/mcp'
  throw new UsageError('Name the address of the service, with --url ADDRESS, such as https://petstore.example.')
}

/** Splits at line feeds only: node:readline also splits at U+2028, which JSON may contain. */
async function* linesOf(input: Readable): AsyncGenerator<string> {
  const parts: string[] = []
  for await (const chunk of input.setEncoding('utf8')) {
    const [end = '', ...following] = (chunk as string).split('\n')
    parts.push(end)
    for (const start of following) yield parts.splice(0, Infinity, start).join('')
  }
  yield parts.join('')
}

/** Sends a message to the service, and prints its answer. An error that is no message of the protocol becomes one. */
async function forward(terminal: Terminal, url: string, key: string, line: string): Promise<void> {
  const json = parseJson(Buffer.from(line), 'line')
  const message = fieldsOf(json instanceof Problem ? {} : json.value)
  const sent = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...mirrored(message) }
  const headers = { Accept: 'application/json, text/event-stream', ...sent }
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  try {
    const answer = await fetch(url, { method: 'POST', headers, body: line, redirect: 'error', signal })
    const text = (await answer.text()).trim()
    if (text === '' && answer.ok) return
    if (text.startsWith('{"jsonrpc":')) return print(terminal, text)
    const refusal = /^{"code":.*"message":/.test(text) ? (JSON.parse(text) as { message: string }).message : ''
    throw new Error(`${url} answers ${answer.status}. ${refusal}`.trim())
  } catch (error) {
    const { message: what, cause = {} } = error as Error & { cause?: { message?: string; code?: string } }
    // The reason of a failed connection is its cause; that of two addresses of a name has only a code.
    const reason = what.startsWith(url) ? what : `${url} does not answer: ${cause.message || cause.code || what}`
    report(terminal, `petstore: ${reason}`)
    const { id } = message
    if (typeof id !== 'string' && typeof id !== 'bigint') return
    const idText = typeof id === 'bigint' ? id : JSON.stringify(id)
    print(terminal, `{"jsonrpc":"2.0","id":${idText},"error":${JSON.stringify({ code: -32_603, message: reason })}}`)
  }
}

/** Returns the headers that repeat parts of a message, from revision 2026-07-28 on. The service says which one it misses. */
function mirrored({ method, params }: Fields): Record<string, string> {
  const { name, _meta: meta } = fieldsOf(params)
  const { 'io.modelcontextprotocol/protocolVersion': revision } = fieldsOf(meta)
  if (revision === undefined) return {}
  const parts = Object.entries({ 'MCP-Protocol-Version': revision, 'Mcp-Method': method, 'Mcp-Name': name })
  const isHeader = (part: unknown) => typeof part === 'string' && /^[\x20-\x7e]*$/.test(part)
  return Object.fromEntries(parts.filter(([, part]) => isHeader(part))) as Record<string, string>
}

type Fields = Record<string, unknown>

/** Returns no fields for a value that is no object. */
function fieldsOf(value: unknown): Fields {
  return { ...(value as object) }
}
