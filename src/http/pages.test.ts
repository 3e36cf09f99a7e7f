// The OpenAPI document that a deployment serves.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { countedSteps } from '../../test/harness/counted-steps.ts'
import { readConfig } from '../config.ts'
import type { PageCall } from './call/call.ts'
import { createOpenapiRoute } from './pages.ts'

it('The OpenAPI document is rendered once, for every Host that asks', () => {
  const serve = createOpenapiRoute(readConfig({}, {}))
  const steps = ['192.0.2.1', '192.0.2.2'].map((host) =>
    countedSteps(() => serve({ protocol: 'http', host, request: { headers: {} } } as PageCall)),
  )
  assert.ok(steps[0]! > 1000 && steps[1]! < 100, steps.join())
})
