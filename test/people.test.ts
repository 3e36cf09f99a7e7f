// Managers and members: who is a manager, that one always remains, and that upgrades and commands agree with the console.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ENGINES } from '../assurance/harness/engines.ts'
import { until } from '../assurance/harness/until.ts'
import type { Role } from '../src/store/account-store.ts'
import { FIRST_RUN_EMAIL } from '../src/store/people-store.ts'
import type { Store } from '../src/store/store.ts'
import { askDatabase } from './database-schema.ts'
import { startPetstore } from './harness.ts'
import { commandsOn } from './in-process-command.ts'
import { restoreOldDatabase } from './old-release.ts'
import { account, addAccount, addKey, event, session } from './sample-rows.ts'
import { withStore } from './with-store.ts'

const rolesIn = async ({ accounts }: Store) =>
  Object.fromEntries((await accounts.listAccounts()).map(({ email, role }) => [email.split('@')[0], role]))

/** Creates accounts of these roles, the first one a manager. */
async function fill({ accounts }: Store, roles: Record<string, Role>): Promise<void> {
  for (const [id, role] of Object.entries(roles)) {
    await accounts.createAccount({ ...account(id), role }, event(id))
    await accounts.setRole(account(id), role, event(id, 'account.role_changed'))
  }
}

for (const engine of ENGINES) {
  describe(`People on ${engine.name}`, { concurrency: false }, () => {
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

    for (const [name, keep, expected] of [
      ['the only account', 1, 'manager'],
      ['one of two accounts', 2, 'member'],
    ] as const) {
      it(`are upgraded: ${name} becomes a ${expected}`, async () => {
        await using database = await engine.newDatabase()
        await restoreOldDatabase(engine, database.url)
        await askDatabase(
          database.url,
          'DELETE FROM accounts',
          ...[FIRST_RUN_EMAIL, 'a', 'b']
            .slice(0, keep + 1)
            .map(
              (email, nth) =>
                `INSERT INTO accounts (id, email, email_folded, password_hash, created_at) VALUES ('${nth}', '${email}', '${email}', 'x', 1)`,
            ),
        )
        const roles = await withStore(database.url, rolesIn)
        const people = Object.fromEntries(['a', 'b'].slice(0, keep).map((email) => [email, expected]))
        assert.deepEqual(roles, { 'first-run': 'member', ...people })
        // What an older instance adds beside this one is a member.
        await askDatabase(
          database.url,
          "INSERT INTO accounts (id, email, email_folded, password_hash, created_at) VALUES ('old', 'old', 'old', 'x', 1)",
        )
        assert.equal((await withStore(database.url, rolesIn))['old'], 'member')
        await using petstore = await startPetstore({ database: database.url })
        const says = () => petstore.logged.some(({ msg }) => String(msg).includes('petstore account manager EMAIL'))
        if (keep === 2) await until(says, 'the log says how to name a manager')
        else assert.ok(!says())
      })
    }

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
        await accounts.createLink('invitation', undefined, 1e15, event('boss', 'account.invited'))
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
      })
    })

    it('get no link for an account that was removed meanwhile, nor from one that is a manager no more', async () => {
      await using database = await engine.newDatabase()
      await withStore(database.url, async (store) => {
        await fill(store, { boss: 'manager', former: 'member' })
        const make = (by: string, person?: string) =>
          store.accounts.createLink(`${by} ${person}`, person, 1e15, event(by, 'account.link_made'))
        assert.deepEqual([await make('boss'), await make('boss', 'former')], [true, true])
        for (const [by, person] of [['boss', 'gone'], ['gone'], ['former'], ['former', 'boss']] as const)
          assert.equal(await make(by, person), false, `${by} for ${person}`)
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
