// A field of a form: what a person, and a screen reader, learn about it.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { FieldProblem } from '../../contract/errors.ts'
import { choice, field, type FieldParts, problemSummary } from './forms.ts'

const parts: FieldParts = { name: 'email', label: 'Email address', problems: [] }
const problems = [new FieldProblem('email', 'It is taken.')]

describe('A field', () => {
  it('has a label, and nothing more where there is nothing to tell', () => {
    const { text } = field(parts)
    assert.match(text, /<div class="field">\s*<label for="email">Email address<\/label>/)
    assert.doesNotMatch(text, /undefined|<p|aria-|inputmode|list/)
  })

  it('is described by its hint, and marked and described by its problem', () => {
    const described = /aria-describedby="([^"]*)"/
    const withHint = field({ ...parts, hint: 'Only for sign-in.' }).text
    assert.match(withHint, /<p class="hint" id="email-hint">Only for sign-in\.<\/p>/)
    assert.equal(described.exec(withHint)?.[1], 'email-hint')
    for (const render of [field, (given: FieldParts) => choice({ ...given, options: [['a', 'A']] })]) {
      const wrong = render({ ...parts, problems }).text
      assert.match(wrong, /<div class="field wrong">/)
      assert.match(wrong, /<p class="problem" id="email-problem">It is taken\.<\/p>/)
      assert.equal(described.exec(wrong)?.[1], 'email-problem')
      assert.match(wrong, /aria-invalid="true"/)
    }
    assert.doesNotMatch(field({ ...parts, name: 'password', problems }).text, /wrong|taken/, 'it is of another field')
  })

  it('offers its suggestions, and digits on a phone', () => {
    const { text } = field({ ...parts, suggestions: ['3', '4'], numeric: true })
    assert.match(text, /list="email-suggestions"/)
    assert.match(
      text,
      /<datalist id="email-suggestions"><option value="3"><\/option><option value="4"><\/option><\/datalist>/,
    )
    assert.match(text, /inputmode="numeric"/)
  })

  it('keeps what was chosen, and nothing else', () => {
    const options = [
      ['a', 'First'],
      ['b', 'Second'],
    ] as const
    assert.deepEqual(choice({ ...parts, options, value: 'b' }).text.match(/<option[^>]*>/g), [
      '<option value="a" >',
      '<option value="b" selected>',
    ])
  })
})

describe('The summary of a form', () => {
  const textOf = (...all: FieldProblem[]) => {
    const summary = problemSummary(all)
    return summary === false ? undefined : summary.text
  }

  it('is absent for one problem that has a field, one line for another, and counts several, each with a link to its field', () => {
    assert.equal(textOf(), undefined)
    const link = '<a href="#email">It is taken.</a>'
    assert.equal(textOf(...problems), undefined)
    assert.equal(textOf(new FieldProblem('', 'Wait.')), `<p class="notice bad" role="alert">Wait.</p>`)
    const several = textOf(...problems, new FieldProblem('', 'Try <again>.'))
    assert.match(several ?? '', /<strong>2 fields need another look<\/strong>/)
    assert.deepEqual(several?.match(/<li>.*?<\/li>/g), [`<li>${link}</li>`, '<li>Try &lt;again&gt;.</li>'])
  })
})
