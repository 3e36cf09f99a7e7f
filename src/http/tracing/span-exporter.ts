// Exports spans in batches, as JSON over HTTP (OTLP). What the collector does harms no request: an export has a time limit, spans wait
// in a queue with a limit, and a batch that fails is dropped.
import { VERSION } from '../../contract/operations.ts'
import type { Log } from '../../log.ts'
import type { Tracing } from '../../contract/tracing-settings.ts'

/** The defaults of OpenTelemetry: an export every five seconds, or sooner for a full batch. */
const EXPORT_EVERY_MS = 5000
const BATCH_SPANS = 512
const QUEUE_LIMIT = 2048

export type Attributes = Record<string, string | number | undefined>

export function createSpanExporter({ url, headers, timeoutMs }: Tracing, resource: Attributes, log: Log) {
  const head = `{"resourceSpans":[{"resource":{${render(resource)}},"scopeSpans":[{"scope":{"name":"petstore"},"spans":[`
  /** As JSON, which takes less memory than objects. */
  const queue: string[] = []
  let exporting: Promise<void> | undefined
  let dropped = 0

  function drop(spans: number, reason: string | undefined): void {
    const details = { url: new URL(url).origin, reason }
    if (dropped === 0) log.warn(details, 'traces cannot be exported, and are dropped until they can')
    dropped += spans
  }

  async function post(spans: readonly string[]): Promise<void> {
    const { ok, status, body } = await fetch(url, {
      method: 'POST',
      headers: { 'user-agent': `petstore/${VERSION}`, ...headers, 'content-type': 'application/json' },
      body: `${head}${spans.join()}]}]}]}`,
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    })
    await body?.cancel()
    if (!ok) throw new Error(`the collector answered ${status}`)
  }

  /** Exports all spans, batch by batch, until a batch fails. Never rejects. */
  async function exportAll(): Promise<void> {
    while (queue.length > 0) {
      const spans = queue.splice(0, BATCH_SPANS)
      try {
        await post(spans)
      } catch (error) {
        // An error of several addresses has no message.
        const { message, code } = ((error as Error).cause ?? error) as NodeJS.ErrnoException
        drop(spans.length, message || code)
        return
      }
      if (queue.length > 0) continue
      if (dropped > 0) log.notice({ dropped }, 'traces are exported again')
      dropped = 0
    }
  }

  const flush = () => (exporting ??= exportAll().finally(() => (exporting = undefined)))
  const timer = setInterval(() => void flush(), EXPORT_EVERY_MS).unref()

  return {
    /** Adds a span in the form of OTLP, but for its attributes. */
    add(span: object, attributes: Attributes): void {
      if (queue.length >= QUEUE_LIMIT) drop(1, `the collector is slow: ${QUEUE_LIMIT} spans wait`)
      // Not if it is longer: what a failed export leaves waits for the timer.
      else if (queue.push(`${JSON.stringify(span).slice(0, -1)},${render(attributes)}}`) === BATCH_SPANS) void flush()
    },
    stop: async (): Promise<void> => {
      clearInterval(timer)
      await exporting
      await flush()
    },
  }
}

/** Renders the attributes of a span or a resource; leaves out those that are undefined. Objects would cost twice the time. */
function render(attributes: Attributes): string {
  const rendered = Object.entries(attributes).map(([key, value]) => {
    const typed = typeof value === 'number' ? `"intValue":"${value}"` : `"stringValue":${JSON.stringify(value)}`
    return value === undefined ? '' : `,{"key":${JSON.stringify(key)},"value":{${typed}}}`
  })
  return `"attributes":[${rendered.join('').slice(1)}]`
}
