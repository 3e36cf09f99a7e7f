// petstore mcp: connects an agent that can only start a program (MCP over stdio) to a service: a message a line, each way.
import { exactJson, type Fields, fieldsOf, type ParsedJson, parseJson } from '../../contract/json.ts'
import { kibibytes } from '../../contract/limits.ts'
import { type Command, UsageError } from '../command.ts'
import { MOST_BYTES, print, readAll, report, type Terminal } from '../terminal.ts'

const KEY_VARIABLE = 'PETSTORE_API_KEY'
const TIMEOUT_MS = 60_000

export const mcp: Command = {
  name: 'mcp',
  summary: 'Connect an agent that starts programs (Model Context Protocol, stdio) to a service',
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
    const key = (terminal.env[KEY_VARIABLE] ?? terminal.envFile[KEY_VARIABLE] ?? '').trim()
    if (!/^[\x21-\x7e]+$/.test(key)) throw new UsageError(`Set ${KEY_VARIABLE} to an API key.`)
    if (terminal.stdin.isTTY) report(terminal, 'Waiting for the messages of an agent, one a line; Ctrl-D ends it.')
    let rest = ''
    // Not node:readline, which also splits at U+2028: JSON may contain it. One character per byte: the service checks the UTF-8.
    for await (const chunk of terminal.stdin.setEncoding('latin1')) {
      const lines = (chunk as string).split('\n')
      // The rest of a line that is too long is not needed to refuse it.
      lines[0] = rest.length > MOST_BYTES ? rest : rest + lines[0]
      rest = lines.pop()!
      for (const line of lines) await forward(terminal, url, key, line)
    }
    await forward(terminal, url, key, rest)
  },
}

function parseUrl(text = ''): string {
  const { protocol, username, password, origin, pathname } = URL.parse(text) ?? {}
  if (/^https?:$/.test(protocol ?? '') && !username && !password)
    return origin + pathname!.replace(/(?:\/(?:v1|mcp)?)*$/, '') + '/mcp'
  throw new UsageError('Name the address of the service, with --url ADDRESS, such as https://petstore.example.')
}

/** Sends a message to the service, and prints its answer. An error that is no message of the protocol becomes one. */
async function forward(terminal: Terminal, url: string, key: string, line: string): Promise<void> {
  if (line.trim() === '') return
  if (line.length > MOST_BYTES) {
    const error = { code: -32_600, message: `The message has more than ${kibibytes(MOST_BYTES)}; it was not sent.` }
    return print(terminal, exactJson({ jsonrpc: '2.0', error }))
  }
  const body = Buffer.from(line, 'latin1')
  const message = fieldsOf((parseJson(body) as Partial<ParsedJson>).value)
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...mirrored(message) }
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  try {
    const answer = await fetch(url, { method: 'POST', headers, body, redirect: 'error', signal })
    const bytes = await readAll(answer.body ?? [])
    if (bytes.length > MOST_BYTES) throw new Error(`answers ${answer.status} with more than ${kibibytes(MOST_BYTES)}`)
    const text = bytes.toString().trim()
    if (text === '' && answer.ok && message['id'] === undefined) return
    if (text.startsWith('{"jsonrpc":')) return print(terminal, text)
    throw new Error(`answers ${answer.status}: ${text.slice(0, 500)}`)
  } catch (error) {
    const { message: what, cause } = error as Error & { cause?: { message?: string; code?: string } }
    // The reason of a failed connection is its cause; that of two addresses of a name has only a code.
    const reason = `${url}: ${cause?.message || cause?.code || what}`
    report(terminal, `petstore: ${reason}`)
    const { id } = message
    if (id !== undefined) print(terminal, exactJson({ jsonrpc: '2.0', id, error: { code: -32_603, message: reason } }))
  }
}

/** Returns the headers that repeat parts of a message, from revision 2026-07-28 on. The service says which one it misses. */
function mirrored({ method, params }: Fields): Record<string, string> {
  const { name, _meta: meta } = fieldsOf(params)
  const { 'io.modelcontextprotocol/protocolVersion': revision } = fieldsOf(meta)
  const parts = { 'MCP-Protocol-Version': revision, 'Mcp-Method': method, 'Mcp-Name': name }
  const isHeader = (part: unknown) => typeof part === 'string' && /^[\x20-\x7e]*$/.test(part)
  return Object.fromEntries(Object.entries(parts).filter(([, part]) => isHeader(part))) as Record<string, string>
}
