import { expect, it } from 'vitest';
import { dispatcherOf } from './proxies.js';
import { hubSettings } from './settings.js';

it('reads proxies by the usual names, small letters first', () => {
  const proxies = (env: NodeJS.ProcessEnv) => hubSettings(env).proxies;
  expect(proxies({})).toEqual({ http: null, https: null, except: '' });
  expect(proxies({ HTTP_PROXY: 'http://a', HTTPS_PROXY: 'http://b', NO_PROXY: '.c' })).toEqual({
    http: 'http://a',
    https: 'http://b',
    except: '.c',
  });
  expect(proxies({ HTTPS_PROXY: 'http://b', https_proxy: 'http://small' }).https).toBe('http://small');
  // Empty is none, also where it hides the other.
  expect(proxies({ HTTP_PROXY: 'http://a', http_proxy: '' }).http).toBe(null);
});

it('refuses what is no proxy for HTTP, and lets its protocol be left out', () => {
  expect(() => dispatcherOf({ http: null, https: 'socks5://a:1080', except: '' })).toThrow(
    'HTTPS_PROXY is not the address of a proxy for HTTP; give one such as http://proxy.example.org:3128',
  );
  expect(() => dispatcherOf({ http: 'http://', https: null, except: '' })).toThrow('HTTP_PROXY is not the address');
  const proxies = { http: 'proxy.example.org:3128', https: null, except: '' };
  expect(dispatcherOf(proxies)).toBe(dispatcherOf(proxies));
});
