import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { html } from './html.ts'

describe('HTML of ours', () => {
  it('escapes what is put into it, in text and in attributes', () => {
    const name = `<script>alert("1")</script>&'`
    assert.equal(html`<b title="${name}">${name}</b>`.text.includes('<script>'), false)
    assert.equal(html`<b>${`<&>"'`}</b>`.text, '<b>&lt;&amp;&gt;&quot;&#39;</b>')
  })

  it('keeps HTML that it made itself, alone or in a list', () => {
    const items = ['a', '<'].map((text) => html`<li>${text}</li>`)
    assert.equal(html`<ul>${items}</ul>`.text, '<ul><li>a</li><li>&lt;</li></ul>')
  })

  it('prints numbers exactly and leaves nothing for what is not there', () => {
    assert.equal(html`${9223372036854775807n}|${0}|${undefined}|${false}`.text, '9223372036854775807|0||')
  })
})
