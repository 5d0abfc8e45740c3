// Code that tsc has to refuse: a type that decays to any would let all of it through.
import { api, seg } from '../page/api.js';
import { useLoaded } from '../page/state.js';

// @ts-expect-error no API has the path
void api('GET', '/api/nope');
// @ts-expect-error the path has no such method
void api('DELETE', '/api/tools');
// @ts-expect-error the body has no such member
void api('POST', '/api/tokens', { nam: 'ci' });
// @ts-expect-error the answer has no such member
void useLoaded('/api/tokens', []).data?.[0].secret;
// @ts-expect-error a state is not a number
void api('GET', `/v1/sessions/${seg('x')}`).then((s) => s.state * 2);
