// The official client of the Model Context Protocol, connected to a service.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { Petstore } from '../harness.ts'

/** The revisions that clients speak: `auto` finds the newest one, `legacy` initializes as older clients do. */
export const REVISIONS = { auto: '2026-07-28', legacy: '2025-11-25' } as const

type Mode = keyof typeof REVISIONS
type Transport = Parameters<Client['connect']>[0]

/** What a tool returned; an error has its body as `error`. */
export type Called = { structuredContent?: Record<string, unknown>; error?: Record<string, unknown> }

export class Agent implements AsyncDisposable {
  readonly client: Client

  private constructor(client: Client) {
    this.client = client
  }

  static async over(transport: Transport, mode: Mode = 'auto'): Promise<Agent> {
    const client = new Client({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode } })
    await client.connect(transport)
    return new Agent(client)
  }

  static connect({ url, key }: Pick<Petstore, 'url' | 'key'>, mode?: Mode, headers = {}): Promise<Agent> {
    const requestInit = { headers: { Authorization: `Bearer ${key}`, ...headers } }
    return Agent.over(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit }), mode)
  }

  /** Calls a tool; the client checks the result against the output schema that it has listed. */
  async call(name: string, args: Record<string, unknown> = {}): Promise<Called> {
    await this.client.listTools()
    const { isError, structuredContent, content } = await this.client.callTool({ name, arguments: args })
    const [{ text = '' } = {}] = content as { text?: string }[]
    return isError
      ? { error: JSON.parse(text) as Record<string, unknown> }
      : { structuredContent: structuredContent as Record<string, unknown> }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client.close()
  }
}

export interface RpcAnswer {
  jsonrpc: string
  id?: unknown
  result?: { tools: Record<string, never>[]; [field: string]: unknown }
  error?: { code: number; message: string; data?: unknown }
}

/** A request as no client sends it: a whole body, or a message without its `jsonrpc`. */
export async function post(
  { url, key }: Pick<Petstore, 'url' | 'key'>,
  message: string | object,
  headers: Record<string, string> = {},
): Promise<{ response: Response; text: string; answer: RpcAnswer }> {
  const response = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...headers },
    body: typeof message === 'string' ? message : JSON.stringify({ jsonrpc: '2.0', ...message }),
  })
  const text = await response.text()
  return { response, text, answer: (text === '' ? {} : JSON.parse(text)) as RpcAnswer }
}
