// petstore mcp: connects an agent that can only start a program (MCP over stdio) to a service: a message a line, each way.
import { createInterface } from 'node:readline'
import { readSecret } from '../config.ts'
import { Problem } from '../contract/errors.ts'
import { parseJson } from '../contract/json.ts'
import { type Command, UsageError } from './command.ts'
import { print, report, type Terminal } from './terminal.ts'

const VARIABLE = 'PETSTORE_API_KEY'
const TIMEOUT_MS = 60_000

type Fields = Record<string, unknown>

export const mcp: Command = {
  name: 'mcp',
  summary: 'Connect an agent that starts programs (Model Context Protocol, stdio) to a service',
  takes: [],
  options: {
    url: {
      value: 'ADDRESS',
      meaning: 'Address of the service, such as https://petstore.example',
      notes: `The API key is read from ${VARIABLE}, or from the file that ${VARIABLE}_FILE names`,
    },
  },
  examples: ['petstore mcp --url http://127.0.0.1:8080'],
  async run({ terminal, flags }) {
    const url = parseUrl(flags['url'])
    const key = readKey(terminal)
    const running = new Set<Promise<void>>()
    for await (const line of createInterface({ input: terminal.stdin })) {
      if (line.trim() === '') continue
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

function readKey({ env, envFile: { variables } }: Terminal): string {
  const source = [env, variables].find((each) => each[VARIABLE] || each[`${VARIABLE}_FILE`]) ?? {}
  const { [VARIABLE]: key, [`${VARIABLE}_FILE`]: path } = source
  if (key || path) return key || readSecret(`${VARIABLE}_FILE`, path!)
  throw new UsageError(`Set ${VARIABLE} to an API key, or ${VARIABLE}_FILE to a file with one.`)
}

/** Sends a message to the service, and prints its answer. An error that is no message of the protocol becomes one. */
async function forward(terminal: Terminal, url: string, key: string, line: string): Promise<void> {
  const json = parseJson(Buffer.from(line), 'line')
  const message = (json instanceof Problem ? {} : json.value) as Fields
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

/** Returns the headers that repeat parts of a message, for a message of the revision 2026-07-28 or later. */
function mirrored({ method, params }: Fields): Record<string, string> {
  const { name, _meta: meta } = (params ?? {}) as Fields
  const revision = (meta as Fields | undefined)?.['io.modelcontextprotocol/protocolVersion']
  if (revision === undefined) return {}
  const isPlain = /^[\x21-\x7e]*$/.test(String(name))
  const nameHeader = isPlain ? String(name) : `=?base64?${Buffer.from(String(name)).toString('base64')}?=`
  const headers = { 'MCP-Protocol-Version': revision as string, 'Mcp-Method': String(method) }
  return name === undefined ? headers : { ...headers, 'Mcp-Name': nameHeader }
}
