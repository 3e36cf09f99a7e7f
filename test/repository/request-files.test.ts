// The requests that the documentation offers to import are up to date, and each of them succeeds, also after an edit.
// `npm run drill generated-clients` runs the collection with Postman's own runner.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { renderCollection, renderRequests } from '../../docs/make-requests.ts'
import { OPERATIONS } from '../../src/contract/operations.ts'
import { FIELDS } from '../../src/contract/pets.ts'
import { restoreExample, startPetstore } from '../harness/harness.ts'

interface Request {
  name: string
  method: string
  url: string
  headers: Record<string, string>
  body: string | undefined
}

interface Pair {
  key: string
  value: string
  disabled?: boolean
}

interface Collection {
  auth: { bearer: Pair[] }
  variable: Pair[]
  item: {
    name: string
    request: {
      method: string
      header: Pair[]
      body?: { raw: string }
      url: { host: string[]; path: string[]; query: Pair[]; variable: Pair[] }
    }
  }[]
}

/** Replaces `{{name}}`, as the clients do. */
const fill = (text: string, values: Record<string, string>) =>
  text.replaceAll(/\{\{([$\w]+)\}\}/g, (_, name: string) => values[name] ?? assert.fail(`no value for ${name}`))

function requestsOfHttpFile(text: string, values: Record<string, string>): Request[] {
  const [, ...parts] = fill(text, values).split(/^### /m)
  return parts.map((part) => {
    const [name = '', ...lines] = part.split('\n')
    const [head = '', body] = lines
      .filter((line) => !line.startsWith('#'))
      .join('\n')
      .trim()
      .split('\n\n')
    const [first = '', ...headers] = head.split('\n')
    const [method = '', url = ''] = first.split(' ')
    const pairs = headers.map((line) => line.split(': ') as [string, string])
    return { name, method, url, headers: Object.fromEntries(pairs), body }
  })
}

function requestsOfCollection(text: string, values: Record<string, string>): Request[] {
  const { variable: own } = JSON.parse(text) as Collection
  const known = { ...Object.fromEntries(own.map(({ key, value }) => [key, value])), ...values }
  const { item, auth } = JSON.parse(fill(text, known)) as Collection
  return item.map(({ name, request: { method, header, body, url } }) => {
    const path = url.path.map((part) => url.variable.find(({ key }) => part === `:${key}`)?.value ?? part)
    const query = url.query.filter(({ disabled }) => !disabled).map(({ key, value }) => [key, value])
    const headers = header.map(({ key, value }) => [key, value])
    return {
      name,
      method,
      url: `${url.host.join('.')}/${path.join('/')}?${new URLSearchParams(query).toString()}`,
      headers: { Authorization: `Bearer ${auth.bearer[0]!.value}`, ...Object.fromEntries(headers) },
      body: body?.raw,
    }
  })
}

const FILES = {
  'requests.http': { render: renderRequests, requestsOf: requestsOfHttpFile },
  'petstore.postman_collection.json': { render: renderCollection, requestsOf: requestsOfCollection },
}

for (const [file, { render, requestsOf }] of Object.entries(FILES)) {
  describe(`docs/${file}`, () => {
    const text = readFileSync(new URL(`../../docs/${file}`, import.meta.url), 'utf8')

    it('is not stale: npm run openapi writes it', () => assert.equal(text, render()))

    it('has a request for each operation that succeeds, again and with an edited animal', async () => {
      await using petstore = await startPetstore()
      const [first, second] = FIELDS.name.schema.examples
      for (const [time, edit] of [(body: string) => body, (body: string) => body.replace(first, second)].entries()) {
        const fresh = { $guid: `guid ${time}`, $timestamp: String(time) }
        const requests = requestsOf(text, { baseUrl: `${petstore.url}/v1`, apiKey: petstore.key, ...fresh })
        assert.deepEqual(
          requests.map(({ name }) => name),
          OPERATIONS.map(({ summary }) => summary),
        )
        for (const [index, { name, method, url, headers, body }] of requests.entries()) {
          const response = await fetch(url, { method, headers, ...(body && { body: edit(body) }) })
          if (method === 'DELETE') await restoreExample(petstore, OPERATIONS[index]!)
          assert.equal(response.status, OPERATIONS[index]!.success.status, `${name}: ${await response.text()}`)
        }
      }
      assert.equal((await petstore.store.pets.list({ limit: 1 }))[0]?.name, second)
    })
  })
}
