// A visit learns that its client has left, also if that was before it began.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { it } from 'node:test'
import { ClientLeft, whenLeft } from './visit.ts'

it('A visit learns that its client leaves, and that it had left before', async () => {
  const response = new ServerResponse(new IncomingMessage(new Socket()))
  const during = whenLeft(response)
  assert.equal(during.aborted, false)
  response.destroy()
  await once(response, 'close')
  const before = whenLeft(response)
  for (const { aborted, reason } of [during, before]) assert.ok(aborted && reason instanceof ClientLeft)
})
