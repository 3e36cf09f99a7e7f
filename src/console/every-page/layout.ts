// Puts the frame around a page: the head, the staging band, the navigation with the visitor's menu, and the footer.
import { VERSION } from '../../contract/operations.ts'
import { assetAddress } from './assets.ts'
import { csrfField } from './forms.ts'
import { html, type Html, isolated } from '../../http/html/html.ts'
import { nameOf } from '../../store/people-store.ts'
import { type HtmlPage, HOME, isManager, type Section, type Visit } from './visit.ts'

const PAW = html`<svg class="paw" viewBox="0 0 24 24" width="22" height="22" aria-hidden="true" focusable="false">
  <ellipse cx="6" cy="10.2" rx="2.1" ry="2.8"/><ellipse cx="10" cy="5.8" rx="2.1" ry="2.9"/>
  <ellipse cx="14.6" cy="5.8" rx="2.1" ry="2.9"/><ellipse cx="18.4" cy="10.2" rx="2.1" ry="2.8"/>
  <path d="M12.2 11c-2.8 0-5.6 3.3-5.6 6 0 1.9 1.4 2.8 2.9 2.8 1.1 0 1.7-.5 2.7-.5s1.7.5 2.7.5c1.5 0 2.9-.9 2.9-2.8 0-2.7-2.8-6-5.6-6z"/>
</svg>`

export function layout(visit: Visit, { title, body, section, status, head, wide }: HtmlPage): Html {
  const top = html`${stagingBand(visit)}
<div class="top">
  <a class="brand" href="${visit.who ? HOME : '/'}">${PAW} <span>${isolated(visit.config.storeName)}</span></a>
  ${navigation(visit, section)}
</div>`
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${status === 400 && 'Error: '}${title} · ${visit.config.storeName}${visit.config.environment === 'staging' && ' staging'}</title>
<link rel="icon" href="${assetAddress('icon.svg')}" type="image/svg+xml">
<link rel="stylesheet" href="${assetAddress('console.css')}">
<script src="${assetAddress('console.js')}" defer></script>
${head}</head>
<body${wide && html` class="wide"`}>
<a class="skip" href="#content">Skip to the content</a>
${wide ? html`<section aria-label="Petstore">${top}</section>` : html`<header>${top}</header>`}
${wide ? body : html`<main class="page" id="content" tabindex="-1">${body}</main>`}
${!wide && foot(visit)}
</body>
</html>
`
}

function stagingBand({ config, atHome }: Visit): Html | false {
  if (config.environment !== 'staging') return false
  const more = atHome && html` <a href="/#staging">Why?</a>`
  return html`<p class="band"><strong>Practice store</strong> <span>Ask whoever set it up before using it for real.${more}</span></p>`
}

function navigation(visit: Visit, section: Section | undefined): Html {
  const item = (name: Section, address: string, words: string) =>
    html`<a href="${address}" ${name === section && html`aria-current="page"`}>${words}</a>`
  const link = (...parts: Parameters<typeof item>) => html`<li>${item(...parts)}</li>`
  if (visit.who === undefined) {
    return html`<nav aria-label="Main"><ul>
      ${link('reference', '/docs', 'Reference')}
      ${link('sign-in', '/sign-in', 'Sign in')}
      ${visit.signup === 'open' && link('sign-up', '/sign-up', 'Create account')}
    </ul></nav>`
  }
  return html`<nav aria-label="Main"><ul>
      ${link('animals', HOME, 'Animals')}
      ${link('categories', '/categories', 'Categories')}
      ${link('history', '/animals/changes', 'History')}
      ${isManager(visit) && link('people', '/people', 'People')}
      ${
        visit.who.account.role !== 'keyless' &&
        html`<li><details class="menu"><summary>Developers</summary><div class="menu-box">
        ${item('activity', '/activity', 'API activity')}${item('keys', '/keys', 'Keys')}${item('reference', '/docs', 'Reference')}</div></details></li>`
      }
    </ul></nav>
    <details class="menu">
      <summary><span class="visually-hidden">Signed in as </span><span class="who">${isolated(nameOf(visit.who.account))}</span></summary>
      <div class="menu-box">
        ${item('account', '/account', 'Account')}
        <form method="post" action="/sign-out">${csrfField(visit)}<button>Sign out</button></form>
      </div>
    </details>`
}

function foot({ config }: Visit): Html {
  return html`<footer class="foot"><ul>
    <li>Petstore ${VERSION}, ${config.environment}</li>
    <li><a href="/docs">API reference</a></li>
    <li><a href="/docs/errors">Error codes</a></li>
    <li><a href="/docs/deprecations">Deprecations</a></li>
    <li><a href="/openapi.json">openapi.json</a></li>
  </ul><noscript><p>Times are in UTC.</p></noscript></footer>`
}
