// Who may open and send what in the console: every page and form, as a stranger, a member and a manager.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ROUTES } from '../../src/console/console.ts'
import { ConsoleClient, hiddenIn, signedInAs, signedInManager } from '../harness/connections/console-client.ts'
import { describeOnSqlite } from '../harness/harness.ts'

/** A new page or form needs a decision here. */
const FOR: Record<'anyone' | 'members' | 'managers', readonly string[]> = {
  anyone: [
    'GET /',
    'GET /sign-in',
    'POST /sign-in',
    'GET /sign-up',
    'POST /sign-up',
    'GET /sign-out',
    'POST /sign-out',
    'GET /docs',
    'GET /docs/errors',
    'GET /docs/deprecations',
    'GET /link',
    'POST /link',
  ],
  members: [
    'GET /keys',
    'GET /keys/new',
    'POST /keys',
    'GET /keys/{id}/first-request',
    'GET /keys/{id}/rename',
    'POST /keys/{id}/rename',
    'GET /keys/{id}/revoke',
    'POST /keys/{id}/revoke',
    'GET /animals',
    'GET /animals.csv',
    'GET /animals/category',
    'GET /animals/new',
    'POST /animals/new',
    'GET /animals/{id}',
    'POST /animals/{id}',
    'GET /animals/{id}/status',
    'POST /animals/{id}/status',
    'POST /animals/{id}/undo',
    'GET /animals/many',
    'POST /animals/many',
    'GET /animals/batches/{id}',
    'POST /animals/batches/{id}',
    'GET /animals/changes',
    'GET /animals/import',
    'POST /animals/import',
    'GET /animals/import/{file}',
    'POST /animals/import/{file}',
    'GET /animals/import/{file}/columns',
    'POST /animals/import/{file}/columns',
    'GET /animals/import/{file}/left-out.csv',
    'GET /categories',
    'GET /categories/new',
    'POST /categories/new',
    'GET /categories/{number}',
    'POST /categories/{number}',
    'GET /activity',
    'GET /account',
    'GET /account/password',
    'POST /account/password',
    'GET /account/name',
    'POST /account/name',
    'GET /account/delete',
    'POST /account/delete',
  ],
  managers: [
    'GET /animals/{id}/remove',
    'POST /categories/{number}/remove',
    'GET /people',
    'GET /people/new',
    'POST /people/new',
    'GET /people/keys',
    'GET /people/keys/{id}/revoke',
    'POST /people/keys/{id}/revoke',
    'POST /people/links/{hash}',
    'GET /people/{id}',
    'POST /people/{id}',
    'POST /people/{id}/link',
    'GET /people/{id}/remove',
    'POST /people/{id}/remove',
  ],
}

const routes = ROUTES.map(({ method, path }) => `${method} ${path}`)

describe('Every page and form of the console', () => {
  it('is for anyone, for members or for managers', () => {
    assert.deepEqual(Object.values(FOR).flat().toSorted(), routes.toSorted())
  })
})

describeOnSqlite('The pages and forms of the console', (service) => {
  /** Sends a request with the CSRF token of the client; for a form, as the page of the sign-out has it. */
  async function answerTo(client: ConsoleClient, route: string) {
    const [method, path = ''] = route.replaceAll(/\{\w+\}/g, '1').split(' ')
    if (method === 'GET') return client.get(path)
    const { csrf = '' } = hiddenIn((await client.get('/sign-in')).body + (await client.get('/docs/errors')).body)
    return client.post(path, { csrf })
  }

  it('ask a stranger to sign in, unless they are for anyone', async () => {
    const stranger = new ConsoleClient(service().url)
    for (const route of [...FOR.members, ...FOR.managers]) {
      const { status, location } = await answerTo(stranger, route)
      assert.deepEqual([status, location?.split('?')[0]], [303, '/sign-in'], route)
    }
  })

  it('tell a member which are for managers, also where nothing is found, and let a manager pass', async () => {
    const member = await signedInAs(service(), 'member@example.com')
    const manager = await signedInManager(service())
    for (const route of [...FOR.members, ...FOR.managers].filter((each) => !each.includes('/account/'))) {
      const isFor = FOR.managers.includes(route)
      const { status, body } = await answerTo(member, route)
      assert.equal(status === 403, isFor, `${route}: ${status}`)
      if (isFor) assert.match(body, /<h1>Only managers can do this<\/h1>\s*<p>Nothing was changed\. Ask a manager/)
      assert.notEqual((await answerTo(manager, route)).status, 403, route)
    }
  })
})
