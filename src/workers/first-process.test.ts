// A worker whose first process answers nothing: here another process that reads its messages and ignores them.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { Writable } from 'node:stream'
import { it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { readConfig } from '../config.ts'
import { ConnectionLimit } from '../http/connection-limit.ts'
import { createLog } from '../log.ts'
import { Channel } from './channel.ts'
import { FirstProcess } from './first-process.ts'
import { CALL_LIMIT_MS, createSharedLimits, type FirstProcessMethods } from './shared.ts'

it('A limit that the first process does not count in time is counted by the worker, without a wait until the next ping', async ({
  mock,
}) => {
  using stack = new DisposableStack()
  const child = spawn(process.execPath, ['--eval', "process.on('message', () => {})"], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    serialization: 'advanced',
  })
  stack.defer(() => child.kill('SIGKILL'))
  const log = createLog('error', new Writable({ write: (_line, _encoding, done) => done() }))
  const first = new FirstProcess(child.pid!, new Channel<FirstProcessMethods>(child, {}), log)
  const config = readConfig({}, { PETSTORE_RATE_LIMIT: '2/60', PETSTORE_WORKERS: '2' })
  const own = createSharedLimits(config, () => 0)
  const { lease } = first.share(own, new ConnectionLimit(async () => 0))
  mock.timers.enable({ apis: ['setTimeout'] })
  const granted = async () => (await lease!('someone', 1)).granted
  const overdue = granted()
  mock.timers.tick(CALL_LIMIT_MS)
  // The timers stand still: the next two calls wait for nothing.
  assert.deepEqual([await overdue, await granted(), await granted()], [1, 1, 0])
  first.onPing()
  const asked = granted()
  assert.equal(await Promise.race([asked, setImmediate('it waits')]), 'it waits')
  mock.timers.tick(CALL_LIMIT_MS)
  assert.equal(await asked, 0)
})
