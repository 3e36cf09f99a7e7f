// A worker passes requests that are not for an operation on to the primary, and its answers to the clients.
import type { ClientRequest, IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import { pipeline } from 'node:stream'
import { Refusal } from '../contract/errors.ts'
import { RETRY_AFTER } from '../contract/limits.ts'
import type { Send } from '../http/answer.ts'
import { announcesBody, askForBody, awaitsContinue, readArrived } from '../http/body.ts'
import { isLast } from '../http/connections.ts'
import { createClientAddress, requestId } from '../http/request.ts'
import { HEAD, packHead } from './head.ts'

const UNAVAILABLE = new Refusal('service_unavailable', 'The service cannot answer this now. Try again shortly.', [
  'Retry-After',
  String(RETRY_AFTER.notReady),
])

/** `path` is that of the primary's socket (back.ts). */
export function passOnTo(
  path: string,
  send: Send,
  isStopping: () => boolean,
  trustProxy: string[] | false,
): RequestListener {
  const clientAddress = createClientAddress(trustProxy)
  let request: typeof import('node:http').request | undefined

  return (raw, response) => {
    request ??= (createRequire(import.meta.url)('node:http') as typeof import('node:http')).request
    // The answer says `close` only where the client's connection must end.
    const headers = { [HEAD]: packHead(raw), Connection: 'keep-alive', ...framingOf(raw) }
    const passed = request({ socketPath: path, agent: false, method: raw.method, headers })
    passed.on('response', (answer) => {
      raw.unpipe(passed)
      // A request that turned out to be malformed was answered by socket-errors.ts.
      if (response.headersSent) passed.destroy()
      else answerWith(answer, raw, response)
    })
    passed.on('error', () => {
      // Later the answer breaks off, and `pipeline` sees to that; of a client that has left there is nothing to report.
      if (response.headersSent || response.destroyed) return
      send({ id: requestId(raw), raw, ip: clientAddress(raw), startedAt: performance.now() }, response, UNAVAILABLE)
    })
    response.once('close', () => passed.destroy())
    passBody(raw, passed)
  }

  function answerWith(answer: IncomingMessage, raw: IncomingMessage, response: ServerResponse): void {
    const mustClose = answer.headers.connection === 'close'
    if (isStopping() || isLast(raw) || mustClose) response.shouldKeepAlive = false
    response.writeHead(answer.statusCode!, headersOf(answer, mustClose))
    pipeline(answer, response, () => {})
  }
}

/** A body that has arrived travels together with the head, so that the primary too sees a request that is complete. */
function hasArrived(raw: IncomingMessage): boolean {
  return raw.complete && !awaitsContinue(raw)
}

function framingOf(raw: IncomingMessage): Record<string, string> {
  if (!announcesBody(raw)) return {}
  if (hasArrived(raw)) return { 'Content-Length': String(raw.readableLength) }
  return { 'Transfer-Encoding': 'chunked', ...(awaitsContinue(raw) && { Expect: '100-continue' }) }
}

function passBody(raw: IncomingMessage, passed: ClientRequest): void {
  if (!announcesBody(raw)) passed.end()
  else if (hasArrived(raw)) passed.end(readArrived(raw))
  else {
    // It may be refused without its body.
    passed.flushHeaders()
    if (!awaitsContinue(raw)) raw.pipe(passed)
    passed.once('continue', () => {
      askForBody(raw)
      raw.pipe(passed)
    })
  }
}

/** Without what concerns the connection between the two processes alone. */
function headersOf({ rawHeaders }: IncomingMessage, mustClose: boolean): string[] {
  const headers: string[] = []
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!.toLowerCase()
    if (name !== 'keep-alive' && (name !== 'connection' || mustClose))
      headers.push(rawHeaders[index]!, rawHeaders[index + 1]!)
  }
  return headers
}
