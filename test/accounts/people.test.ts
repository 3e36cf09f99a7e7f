// Managers and members: who is a manager, that one always remains, and that upgrades and commands agree with the console.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ENGINES } from '../harness/databases/engines.ts'
import { EmailTaken, NameTaken, NoAccount } from '../../src/accounts/account-problems.ts'
import { Accounts } from '../../src/accounts/accounts.ts'
import { InvalidFields } from '../../src/contract/errors.ts'
import type { Account, Role } from '../../src/store/account-store.ts'
import { FIRST_RUN_EMAIL } from '../../src/store/people-store.ts'
import type { Store } from '../../src/store/store.ts'
import { ConsoleClient, signedInManager } from '../harness/connections/console-client.ts'
import { PASSWORD, startPetstore } from '../harness/harness.ts'
import { commandsOn } from '../harness/programs/in-process-command.ts'
import { account, addAccount, addKey, event, session } from '../harness/databases/sample-rows.ts'
import { withStore } from '../harness/databases/with-store.ts'

const rolesIn = async ({ accounts }: Store) =>
  Object.fromEntries((await accounts.listAccounts()).map(({ email, role }) => [email.split('@')[0], role]))

const isTaken = (made: Account | InvalidFields, why: typeof EmailTaken | typeof NameTaken = EmailTaken) =>
  made instanceof InvalidFields && made.problems.length === 1 && made.problems[0] instanceof why

/** Creates accounts of these roles, the first one a manager. */
async function fill({ accounts }: Store, roles: Record<string, Role>): Promise<void> {
  for (const [id, role] of Object.entries(roles)) {
    await accounts.createAccount({ ...account(id), role }, event(id))
    await accounts.setRole(account(id), role, event(id, 'account.role_changed'))
  }
}

for (const engine of ENGINES) {
  describe(`People on ${engine.name}`, { concurrency: false }, () => {
    it('have one account for all ways to write an address', async () => {
      await using database = await engine.newDatabase()
      await withStore(database.url, async (store) => {
        const accounts = new Accounts({ store, environment: 'staging', clock: Date.now })
        const create = async (email: string) => accounts.create(email, PASSWORD, 'console')
        const found = async (email: string) => (await accounts.signIn(email, PASSWORD))?.id
        const [composed, decomposed] = ['andr\u00e9@example.com', 'Andre\u0301@example.com']
        const old = ((await create(decomposed)) as Account).id
        for (const email of [
          composed,
          decomposed,
          composed.toUpperCase(),
          ` ${composed} `,
          'Andr\uff45\u0301@example.com',
        ]) {
          assert.equal(await found(email), old, email)
          assert.ok(isTaken(await create(email.trim())), email)
        }
        const both = await Promise.all(['zo\u00eb@example.com', 'Zoe\u0308@example.com'].map(create))
        assert.equal(both.filter((made) => isTaken(made)).length, 1)
        assert.equal(await found('ZOE\u0308@example.com'), await found('zo\u00eb@example.com'))
        assert.match(
          (
            await commandsOn(database.url).call(0, [
              'key',
              'create',
              '--account',
              'zo\u00eb@example.com',
              '--name',
              'x',
            ])
          ).stdout,
          /^pets_/,
        )
      })
    })

    it('have a name that no other open account has, however it is written, also when two take one at the same moment', async () => {
      await using database = await engine.newDatabase()
      await withStore(database.url, async (store) => {
        const accounts = new Accounts({ store, environment: 'staging', clock: Date.now })
        const create = (nth: number, name: string) =>
          accounts.create(`${nth}@example.com`, PASSWORD, 'console', { name })
        const ben = (await create(0, 'Ben')) as Account
        assert.equal((await store.accounts.accountById(ben.id))?.name, 'Ben')
        for (const name of ['BEN', 'B\u200ben', ' Ｂen']) assert.ok(isTaken(await create(1, name), NameTaken), name)
        const both = (await Promise.all([create(1, 'Zoë'), create(2, 'ZOE\u0308')])) as Account[]
        assert.equal(both.filter((made) => isTaken(made, NameTaken)).length, 1)
        const zoe = both.find(({ name }) => name)!
        const other = (await create(3, 'Cara')) as Account
        const rename = async (who: Account, name: string) => accounts.setName(who, name, 'console')
        const taken = await Promise.all([rename(zoe, 'Dora'), rename(other, 'dora')])
        assert.equal(taken.filter((problem) => problem instanceof NameTaken).length, 1)
        assert.ok((await rename(ben, 'DORA')) instanceof NameTaken)
        // A form that was sent twice, and another way to write one's own name.
        assert.deepEqual(await Promise.all([rename(ben, 'BEN'), rename(ben, 'BEN')]), [undefined, undefined])
        const renamed = (await store.accounts.auditTrail(ben.id, 9)).filter(
          ({ action }) => action === 'account.renamed',
        )
        assert.deepEqual(
          renamed.map(({ detail }) => detail),
          ['Name: "Ben" → "BEN"'],
        )
        await store.accounts.removeAccount(ben.id, event(zoe.id, 'account.removed'))
        const again = (await create(5, 'ben')) as Account
        const names = await store.accounts.namesOf([ben.id, again.id, 'acct_none', '\0', '\ud800'])
        assert.deepEqual(
          names,
          new Map([
            [ben.id, 'BEN (left)'],
            [again.id, 'ben'],
          ]),
        )
        assert.ok((await rename(ben, 'Gone')) instanceof NoAccount)
      })
    })

    it('are not the account of the first run: its address is reserved, however it is written, and it is not listed', async () => {
      await using database = await engine.newDatabase()
      const commands = commandsOn(database.url)
      const password = { input: 'a long password' }
      const id = await withStore(database.url, async (store) => {
        const accounts = new Accounts({ store, environment: 'staging', clock: Date.now })
        const firstRun = (await accounts.createFirstRun())!
        await fill(store, { boss: 'manager' })
        assert.equal(await accounts.makeLink(account('boss'), firstRun), undefined)
        const people = await store.accounts.pageOfPeople({ limit: 9 })
        assert.deepEqual(
          people.map((person) => person.id),
          ['boss'],
        )
        return firstRun.id
      })
      for (const words of [
        ...[FIRST_RUN_EMAIL, 'First-Run@localhost', '\uff46irst-run@localhost'].map((email) => [
          'account',
          'create',
          email,
          '--password-stdin',
        ]),
        ['account', 'manager', FIRST_RUN_EMAIL],
        ['account', 'password', FIRST_RUN_EMAIL, '--password-stdin'],
      ])
        assert.match(
          (await commands.call(1, words, password)).stderr,
          /first-run@localhost is reserved/,
          words.join(' '),
        )
      await using petstore = await startPetstore({ database: database.url })
      const manager = await signedInManager(petstore)
      assert.equal((await manager.get(`/people/${id}`)).status, 404)
      const joined = await new ConsoleClient(petstore.url).fillIn('/sign-up', {
        name: 'First',
        email: FIRST_RUN_EMAIL,
        password: PASSWORD,
      })
      assert.match(joined.body, /first-run@localhost is reserved/)
      await commands.call(0, ['account', 'remove', FIRST_RUN_EMAIL, '--yes'])
    })

    it('have a manager: the first account by command, whose role is that of a person', async () => {
      await using database = await engine.newDatabase()
      const commands = commandsOn(database.url)
      await withStore(database.url, (store) => store.accounts.createAccount(account('x', FIRST_RUN_EMAIL), event('x')))
      for (const name of ['one', 'two'])
        await commands.call(0, ['account', 'create', `${name}@example.com`, '--password-stdin'], {
          input: 'a long password',
        })
      const { stdout } = await commands.call(0, 'account list')
      assert.match(stdout, /one@example\.com .* Manager\n/)
      assert.match(stdout, /two@example\.com .* Member\n/)
    })

    it('keep one manager, also when two ask at once to be members or to go', async () => {
      for (const [first, second] of [
        ['setRole', 'setRole'],
        ['setRole', 'removeAccount'],
        ['removeAccount', 'removeAccount'],
      ] as const) {
        await using database = await engine.newDatabase()
        await withStore(database.url, async (one) => {
          await withStore(database.url, async (other) => {
            await fill(one, { a: 'manager', b: 'manager', c: 'member' })
            const leave = {
              setRole: ({ accounts }: Store, id: string) =>
                accounts.setRole({ id, role: 'manager' }, 'member', event(id, 'account.role_changed')),
              removeAccount: ({ accounts }: Store, id: string) =>
                accounts.removeAccount(id, event(id, 'account.removed'), 'manager'),
            }
            const left = await Promise.all([leave[first](one, 'a'), leave[second](other, 'b')])
            assert.deepEqual(left.toSorted(), [false, true], `${first} and ${second}`)
            assert.equal(Object.values(await rolesIn(one)).filter((role) => role === 'manager').length, 1)
          })
        })
      }
    })

    it('keep a manager who can sign in: the account of the first run is none', async () => {
      await using database = await engine.newDatabase()
      await withStore(database.url, async (store) => {
        await fill(store, { a: 'manager', b: 'member' })
        await store.accounts.createAccount({ ...account('x', FIRST_RUN_EMAIL), role: 'manager' }, event('x'))
        const demoted = event('a', 'account.role_changed')
        assert.equal(await store.accounts.setRole({ id: 'a', role: 'manager' }, 'member', demoted), false)
        assert.equal(await store.accounts.removeAccount('a', event('a', 'account.removed')), false)
      })
    })

    it('may all go, the last of them with the role of a manager', async () => {
      await using database = await engine.newDatabase()
      await withStore(database.url, async (store) => {
        await fill(store, { a: 'manager', b: 'member' })
        await store.accounts.createAccount(account('x', FIRST_RUN_EMAIL), event('x'))
        const remove = (id: string) => store.accounts.removeAccount(id, event(id, 'account.removed'))
        assert.deepEqual([await remove('a'), await remove('b'), await remove('a')], [false, true, true])
      })
    })

    it('change only from the role that was seen, and leave an event; one who loses the right to keys loses the keys', async () => {
      await using database = await engine.newDatabase()
      await withStore(database.url, async (store) => {
        const { accounts } = store
        await fill(store, { boss: 'manager', b: 'member' })
        for (const [nth, id] of ['key_1', 'key_2'].entries()) await addKey(store, id, 'b', nth)
        const changed = { ...event('boss', 'account.role_changed'), at: 7 }
        assert.equal(await accounts.setRole({ id: 'b', role: 'manager' }, 'keyless', changed), false)
        assert.equal(await accounts.removeAccount('b', changed, 'keyless'), false)
        assert.equal(await accounts.setRole({ id: 'b', role: 'member' }, 'keyless', changed), true)
        assert.deepEqual(
          (await accounts.listKeys('b')).map(({ revokedAt }) => revokedAt),
          [7, 7],
        )
        assert.equal(await addKey(store, 'key_3', 'b', 3), 'no right')
        const trail = async (id: string) => (await accounts.auditTrail(id, 3)).map(({ action }) => action)
        assert.deepEqual((await trail('b')).slice(0, 2), ['key.revoked', 'key.revoked'])
        assert.equal((await trail('boss'))[0], 'account.role_changed')
        assert.equal(await accounts.setRole({ id: 'b', role: 'keyless' }, 'member', changed), true)
        assert.equal(await addKey(store, 'key_3', 'b', 3), 'created')
      })
    })

    it('use a link only for what it is for: an invitation sets no password, and a link for a password adds no account', async () => {
      await using database = await engine.newDatabase()
      await withStore(database.url, async (store) => {
        const { accounts } = store
        await fill(store, { boss: 'manager', b: 'member', c: 'member' })
        const cara = { name: 'Cara', role: 'keyless' } as const
        for (const [hash, to] of [
          ['replaced', cara],
          ['other', { ...cara, name: 'Dora' }],
          ['invitation', cara],
        ] as const)
          assert.ok(await accounts.createLink(hash, to, 1e15, event('boss', 'account.invited')))
        assert.deepEqual(
          (await accounts.links(1, 9)).map(({ hash }) => hash),
          ['invitation', 'other'],
        )
        assert.partialDeepStrictEqual(await accounts.linkByHash('invitation', 1), {
          ...cara,
          madeBy: 'boss@example.com',
        })
        await accounts.createLink('password', 'b', 1e15, event('boss', 'account.link_made'))
        const join = (link: string) => accounts.createAccount(account(`new-${link}`), event('new'), link)
        const set = (id: string, link: string) =>
          accounts.setPassword(id, 'another', event(id, 'account.password_changed'), undefined, link)
        for (const link of ['password', 'none']) assert.equal(await join(link), false, link)
        for (const [id, link] of [
          ['b', 'invitation'],
          ['c', 'password'],
          ['b', 'none'],
        ] as const)
          assert.equal(await set(id, link), false, `${id} ${link}`)
        assert.deepEqual([await join('invitation'), await set('b', 'password')], [true, true])
        assert.deepEqual([await join('invitation'), await set('b', 'password')], [false, false])
        assert.equal((await accounts.accountById('new-invitation'))?.role, 'keyless')
      })
    })

    it('get no link for themselves or for an account that was removed meanwhile, nor from one that is a manager no more', async () => {
      await using database = await engine.newDatabase()
      await withStore(database.url, async (store) => {
        await fill(store, { boss: 'manager', former: 'member' })
        const make = (by: string, person?: string) =>
          store.accounts.createLink(`${by} ${person}`, person, 1e15, event(by, 'account.link_made'))
        assert.deepEqual([await make('boss'), await make('boss', 'former')], [true, true])
        const refused = [['boss', 'boss'], ['boss', 'gone'], ['gone'], ['former'], ['former', 'boss']] as const
        for (const [by, person] of refused) assert.equal(await make(by, person), false, `${by} for ${person}`)
        assert.ok(await store.accounts.linkByHash('boss former', 1))
      })
    })

    it('lose their links with the role of a manager, also those whose form is being sent, and get none back with it', async () => {
      await using database = await engine.newDatabase()
      await withStore(database.url, async (store) => {
        const { accounts } = store
        await fill(store, { boss: 'manager', former: 'manager', b: 'member' })
        for (const by of ['boss', 'former']) {
          await accounts.createLink(`${by} invites`, undefined, 1e15, event(by, 'account.invited'))
          await accounts.createLink(`${by} helps b`, 'b', 1e15, event(by, 'account.link_made'))
        }
        const became = event('boss', 'account.role_changed')
        assert.ok(await accounts.setRole({ id: 'former', role: 'manager' }, 'member', became))
        const join = (by: string) => accounts.createAccount(account(`by-${by}`), event('new'), `${by} invites`)
        const help = (by: string) =>
          accounts.setPassword('b', 'x', event('b', 'account.password_changed'), undefined, `${by} helps b`)
        assert.deepEqual([await join('former'), await help('former')], [false, false])
        assert.ok(await accounts.setRole({ id: 'former', role: 'member' }, 'manager', became))
        assert.equal(await accounts.linkByHash('former invites', 1), undefined)
        assert.deepEqual([await join('boss'), await help('boss')], [true, true])
      })
    })

    it('are listed newest first, page by page, with when they were last seen', async () => {
      await using database = await engine.newDatabase()
      await withStore(database.url, async (store) => {
        const { accounts } = store
        for (const id of ['a', 'b', 'c']) await addAccount(store, id)
        await accounts.createSession(session(1, 'a', { lastSeenAt: 50 }), 'hash', {
          ...event('a', 'session.started'),
          at: 40,
        })
        await accounts.createSession(session(2, 'b', { lastSeenAt: 60 }), 'hash', {
          ...event('b', 'session.started'),
          at: 60,
        })
        await accounts.endSession(session(2, 'b').tokenHash, { ...event('b', 'session.ended'), at: 70 })
        await accounts.appendEvent({ ...event('c', 'session.refused'), at: 80 })
        const seen = []
        for (let after; ;) {
          const [person] = await accounts.pageOfPeople({ limit: 1, after })
          if (person === undefined) break
          seen.push([person.id, person.lastSeenAt])
          after = person
        }
        assert.deepEqual(seen, [
          ['c', 0],
          ['b', 70],
          ['a', 50],
        ])
      })
    })

    it('are made managers by a command; another keeps the last one', async () => {
      await using database = await engine.newDatabase()
      await withStore(database.url, (store) => fill(store, { a: 'manager', b: 'keyless' }))
      const commands = commandsOn(database.url)
      const refused = await commands.call(1, 'account remove a@example.com --yes')
      assert.match(refused.stderr, /This is the only manager\. Make another person a manager first\./)
      assert.match((await commands.call(1, 'key create --account b@example.com --name x')).stderr, /right to keys/)
      const json = await commands.call(0, 'account manager b@example.com --json')
      assert.equal((JSON.parse(json.stdout) as { role: string }).role, 'manager')
      await commands.call(0, 'account remove a@example.com --yes')
      assert.deepEqual(await withStore(database.url, rolesIn), { b: 'manager' })
    })
  })
}
