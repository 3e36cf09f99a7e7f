// Where a sign-in may lead.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { ROUTES, SECTIONS } from '../console.ts'
import { HOME, safeNext } from './visit.ts'

it('A sign-in leads to any page of the console, with its whole query, and to no other address', () => {
  const leadsTo = (next: string | null) => safeNext(next, { sections: SECTIONS })
  for (const next of [
    '/keys',
    '/keys?state=inactive&after=key_1',
    '/keys/key_1/rename?typed=WyJh.b-_',
    '/animals?q=elo+sch*&from=1+schnurli',
    '/animals/7?status=sold&q=%22a%22',
    '/activity?span=day&key=key_1&status=404',
    '/account/delete',
    '/categories/3?saved=3',
    "/animals?q=-._~!$&'()*+,;=:@/?%41",
    '/animals?q=[\\]^`{|}',
  ])
    assert.equal(leadsTo(next), next)
  for (const { access, path } of ROUTES.filter(({ method }) => method === 'GET')) {
    const page = path.replaceAll(/\{\w+\}/g, '1')
    if (access === 'session' && !page.endsWith('.csv')) assert.equal(leadsTo(page), page, 'every page for members')
  }
  assert.equal(leadsTo('/animals.csv'), '/animals', 'a download leads to its list')
  assert.equal(leadsTo('/animals.csv?status=sold'), '/animals?status=sold')
  const otherPaths = [
    '',
    '/',
    '/docs',
    '/keysmith',
    '//keys',
    '/keys\n',
    '/animals\\x',
    '/animals.csvx',
    '/keys.csv',
    'keys',
  ]
  const otherHosts = [
    '/keys:80?a',
    '/keys@a.example?a',
    'https://a.example/keys',
    '//evil.example',
    'javascript:alert(1)',
  ]
  const otherCharacters = [' ', '\r\n', '\u007f', 'ä', '"', '<', '>', '#'].map((character) => `/keys?a${character}b`)
  for (const next of [null, ...otherPaths, ...otherHosts, ...otherCharacters])
    assert.equal(leadsTo(next), HOME, String(next))
})
