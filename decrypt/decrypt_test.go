// SPDX-License-Identifier: Apache-2.0

package decrypt_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/decrypt"
)

// The files in testdata are encrypted by sops itself.
func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func manifest(t testing.TB, text []byte) map[string]any {
	t.Helper()
	b, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func load(t testing.TB, names ...string) *decrypt.Keys {
	t.Helper()
	data := map[string][]byte{}
	for _, name := range names {
		data[name] = read(t, name)
	}
	keys, err := decrypt.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// alone has nothing that keys could come from but those that are given: no keyring, no
// file, no agent, no program.
func alone(t *testing.T) {
	t.Helper()
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "GNUPGHOME"} {
		t.Setenv(name, t.TempDir())
	}
	t.Setenv("PATH", "")
}

func TestManifest(t *testing.T) {
	alone(t)
	want := manifest(t, read(t, "plain.yaml"))
	data := map[string]any{}
	for key, text := range want["stringData"].(map[string]any) {
		data[key] = base64.StdEncoding.EncodeToString([]byte(text.(string)))
	}
	delete(want, "stringData") // the fields would not be ours
	want["data"] = data
	for name, test := range map[string]struct {
		file string
		keys []string
		err  string
	}{
		"age":                         {"age.yaml", []string{"fleet.agekey"}, ""},
		"OpenPGP":                     {"pgp.yaml", []string{"fleet.asc"}, ""},
		"more keys than are needed":   {"pgp.yaml", []string{"other.agekey", "fleet.agekey", "fleet.asc"}, ""},
		"the second age key":          {"several.yaml", []string{"fleet.agekey"}, ""},
		"the OpenPGP key beside them": {"several.yaml", []string{"fleet.asc"}, ""},
		"two of three groups":         {"groups.yaml", []string{"fleet.agekey", "fleet.asc"}, ""},
		"all three groups":            {"groups.yaml", []string{"fleet.agekey", "fleet.asc", "other.agekey"}, ""},
		"one group of three":          {"groups.yaml", []string{"fleet.asc"}, "the given keys open 1 of the 2 key groups that are needed; it is encrypted for age1"},
		"another age key":             {"other.yaml", []string{"fleet.agekey"}, "none of the given keys can open it: it is encrypted for age1"},
		"no OpenPGP key":              {"pgp.yaml", []string{"fleet.agekey"}, "it is encrypted for OpenPGP "},
	} {
		t.Run(name, func(t *testing.T) {
			encrypted := manifest(t, read(t, test.file))
			before, _ := json.Marshal(encrypted)
			got, err := load(t, test.keys...).Manifest(encrypted)
			if !matches(err, test.err) {
				t.Fatal(err)
			}
			if err == nil && !reflect.DeepEqual(got, want) {
				t.Errorf("got %v", got)
			}
			if after, _ := json.Marshal(encrypted); string(after) != string(before) {
				t.Error("it has changed what it was given")
			}
		})
	}
}

func matches(err error, want string) bool {
	if want == "" || err == nil {
		return (err == nil) == (want == "")
	}
	return strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "sops-canary")
}

// Types are as they were, and what no rule encrypts stays as it is.
func TestTypes(t *testing.T) {
	got, err := load(t, "fleet.agekey").Manifest(manifest(t, read(t, "thing.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(manifest(t, read(t, "thing.plain.yaml")))
	if err != nil || string(text) != string(want) {
		t.Errorf("got %s\nwant %s", text, want)
	}
}

// TestT53 changes documents as somebody would who may write to the repository and has no
// key. No error has a value.
func TestT53(t *testing.T) {
	alone(t)
	keys := load(t, "fleet.agekey", "fleet.asc")
	for name, test := range map[string]struct {
		file   string
		change func(m, data, sops map[string]any)
		err    string
	}{
		"a value from another place": {"age.yaml", func(_, data, _ map[string]any) { data["lines"] = data["password"] }, "stringData.lines: it is damaged, or was moved here from another place"},
		"a damaged value":            {"age.yaml", func(_, data, _ map[string]any) { data["password"] = replaced(data["password"], "data:", "data:AAAA") }, "stringData.password: it is damaged"},
		"a damaged nonce":            {"age.yaml", func(_, data, _ map[string]any) { data["password"] = replaced(data["password"], "iv:", "iv:!") }, "stringData.password: it is damaged"},
		"a short tag": {"age.yaml", func(_, data, _ map[string]any) {
			data["password"] = "ENC[AES256_GCM,data:AAAA,iv:AAAA,tag:AAAA,type:str]"
		}, "stringData.password: it is damaged"},
		"half a value": {"age.yaml", func(_, data, _ map[string]any) { data["password"] = "ENC[AES256_GCM,data:AAAA" }, "stringData.password: it is damaged"},
		"another type": {"age.yaml", func(_, data, _ map[string]any) { data["password"] = replaced(data["password"], "type:str", "type:int") }, "stringData.password: it is not of the type that it is encrypted as"},
		"a type of nobody": {"age.yaml", func(_, data, _ map[string]any) {
			data["password"] = replaced(data["password"], "type:str", "type:exec")
		}, "stringData.password: it is encrypted as a type that is not known"},
		"a value that is readable":  {"age.yaml", func(_, data, _ map[string]any) { data["more"] = "sops-canary" }, "stringData.more is not encrypted, and the document says that it is"},
		"a number that is readable": {"age.yaml", func(_, data, _ map[string]any) { data["more"] = 1.0 }, "stringData.more is not encrypted"},
		"a value nowhere":           {"age.yaml", func(m, data, _ map[string]any) { m["type"] = data["password"] }, "type: it is damaged, or was moved here"},
		"a label of ours":           {"age.yaml", func(m, _, _ map[string]any) { m["metadata"].(map[string]any)["labels"] = map[string]any{"a": "b"} }, ""},
		"a value that is gone":      {"age.yaml", func(_, data, _ map[string]any) { delete(data, "lines") }, ""}, // the MAC is not checked
		"no key at all":             {"age.yaml", func(_, _, sops map[string]any) { delete(sops, "age") }, "the field sops names no key"},
		"keys as a text":            {"age.yaml", func(_, _, sops map[string]any) { sops["age"] = "sops-canary" }, "the field sops cannot be read"},
		"a key that is text":        {"age.yaml", func(_, _, sops map[string]any) { ageOf(sops)["enc"] = "sops-canary" }, "none of the given keys can open it"},
		"half a key":                {"age.yaml", func(_, _, sops map[string]any) { ageOf(sops)["enc"] = ageOf(sops)["enc"].(string)[:200] }, "none of the given keys can open it"},
		"a recipient of a megabyte": {"other.yaml", func(_, _, sops map[string]any) { ageOf(sops)["recipient"] = strings.Repeat("a", 1<<20) }, "none of the given keys can open it"},
		"a crowd of recipients":     {"age.yaml", func(_, _, sops map[string]any) { crowd(sops) }, "it is encrypted for 500 keys, and at most 200 are tried"},
		"a regular expression":      {"age.yaml", func(_, _, sops map[string]any) { sops["encrypted_regex"] = "(" }, "sops.encrypted_regex: not a regular expression"},
		"a KMS of somebody": {"other.yaml", func(_, _, sops map[string]any) {
			delete(sops, "age")
			sops["kms"] = []any{map[string]any{"arn": "arn:aws:kms:evil"}}
		}, "it is encrypted for AWS KMS (which is never asked)"},
		"a vault of somebody": {"other.yaml", func(_, _, sops map[string]any) {
			sops["hc_vault"] = []any{map[string]any{"vault_address": "https://evil.example.com"}}
		}, "Vault (which is never asked)"},
		"a vault beside a key of us": {"age.yaml", func(_, _, sops map[string]any) {
			sops["hc_vault"] = []any{map[string]any{"vault_address": "https://evil.example.com"}}
		}, ""},
		"a threshold below zero":   {"groups.yaml", func(_, _, sops map[string]any) { sops["shamir_threshold"] = -5.0 }, "the given keys open 2 of the 3 key groups"},
		"a threshold of one":       {"groups.yaml", func(_, _, sops map[string]any) { sops["shamir_threshold"] = 1.0 }, ""},
		"a share instead of a key": {"groups.yaml", func(_, _, sops map[string]any) { sops["key_groups"] = sops["key_groups"].([]any)[:1] }, "the key in it is not one of SOPS"},
		"the same share twice":     {"groups.yaml", func(_, _, sops map[string]any) { g := sops["key_groups"].([]any); g[1] = g[0] }, "the shares of its key do not fit together"},
		"a packet without end":     {"pgp.yaml", func(_, _, sops map[string]any) { sops["pgp"].([]any)[0].(map[string]any)["enc"] = armoured(endless) }, "none of the given keys can open it"},
		"a packet that unpacks":    {"pgp.yaml", func(_, _, sops map[string]any) { sops["pgp"].([]any)[0].(map[string]any)["enc"] = armoured(compressed) }, "none of the given keys can open it"},
		"a packet of the wrong shape": {"pgp.yaml", func(_, _, sops map[string]any) {
			sops["pgp"].([]any)[0].(map[string]any)["enc"] = armoured("\xc1\x0f\x03")
		}, "none of the given keys can open it"},
	} {
		t.Run(name, func(t *testing.T) {
			m := manifest(t, read(t, test.file))
			test.change(m, m["stringData"].(map[string]any), m["sops"].(map[string]any))
			_, err := keys.Manifest(m)
			if !matches(err, test.err) || err != nil && len(err.Error()) > 1000 {
				t.Error(err)
			}
		})
	}
}

const (
	// endless is a packet of encrypted data whose length is 4 GiB.
	endless = "\xd2\xff\xff\xff\xff\xff\x01"
	// compressed is a compressed packet of an unknown length that is not compressed at all.
	compressed = "\xa3\x01\x00\x00\x00\xff\xff"
)

func armoured(packet string) string {
	return "-----BEGIN PGP MESSAGE-----\n\n" + base64.StdEncoding.EncodeToString([]byte(packet)) + "\n-----END PGP MESSAGE-----\n"
}

func replaced(value any, old, with string) string {
	return strings.Replace(value.(string), old, with, 1)
}

func ageOf(sops map[string]any) map[string]any { return sops["age"].([]any)[0].(map[string]any) }

func crowd(sops map[string]any) {
	for range 499 {
		sops["age"] = append(sops["age"].([]any), ageOf(sops))
	}
}

// A Secret whose data are files that are encrypted each by itself, as a generator of
// kustomize makes them.
func TestFiles(t *testing.T) {
	alone(t)
	for name, want := range map[string]string{
		"config.yaml": "user: ann\npassword: sops-canary-5\nlist:\n    - sops-canary-6\n    - 7\n\"on\": true\n",
		"config.json": "{\n\t\"n\": 1.5,\n\t\"password\": \"sops-canary-5\",\n\t\"user\": \"ann\"\n}\n",
		"app.env":     "USER=ann\nPASSWORD=sops-canary-5 with = and spaces\nPEM=a\\nb\n",
		"key.bin":     string(read(t, "files/key.bin")),
	} {
		t.Run(name, func(t *testing.T) {
			for _, key := range []string{"fleet.agekey", "fleet.asc"} {
				got, err := load(t, key).Manifest(secret(name, read(t, "files/"+name+".enc")))
				if err != nil {
					t.Fatal(err)
				}
				plain := dataOf(t, got, name)
				if plain != want {
					t.Errorf("%s", plain)
				}
			}
			_, err := load(t, "other.agekey").Manifest(secret(name, read(t, "files/"+name+".enc")))
			if !matches(err, "data."+name+": none of the given keys can open it: it is encrypted for age1") {
				t.Error(err)
			}
		})
	}

	_, err := load(t, "fleet.agekey").Manifest(secret("app.ini", read(t, "files/app.ini.enc")))
	if !matches(err, "data.app.ini: INI files are not decrypted") {
		t.Error(err)
	}
	for name, content := range map[string]string{"JSON": `{"mac": "ENC[AES256_GCM,`, "YAML": "a: [\nmac: ENC[AES256_GCM,", "a list": "- a\n- mac: ENC[AES256_GCM,", "no field": "mac: ENC[AES256_GCM,data:a", "dotenv": "sops_mac=ENC[AES256_GCM,"} {
		if _, err := load(t, "fleet.agekey").Manifest(secret("x", []byte(content))); err == nil {
			t.Errorf("%s is decrypted", name)
		}
	}
}

func secret(key string, content []byte) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{key: base64.StdEncoding.EncodeToString(content), "plain": "YQ=="}}
}

func dataOf(t *testing.T, secret map[string]any, key string) string {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(secret["data"].(map[string]any)[key].(string))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Without keys nothing that is encrypted is sent, except files: whoever reads them may
// decrypt them. What is not encrypted is the same map.
func TestNoKeys(t *testing.T) {
	var none *decrypt.Keys
	if _, err := none.Manifest(manifest(t, read(t, "age.yaml"))); !matches(err, "no decryption is configured") {
		t.Error(err)
	}
	files := secret("config.yaml", read(t, "files/config.yaml.enc"))
	if got, err := none.Manifest(files); err != nil || !maps.Equal(got["data"].(map[string]any), files["data"].(map[string]any)) {
		t.Error(err)
	}

	orphan := manifest(t, read(t, "age.yaml"))
	delete(orphan, "sops")
	for _, keys := range []*decrypt.Keys{nil, load(t, "fleet.agekey")} {
		if _, err := keys.Manifest(orphan); !matches(err, "stringData.lines is encrypted with SOPS, and the manifest has no field sops that says how") {
			t.Error(err)
		}
	}
	plain := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "b"}}
	got, err := load(t, "fleet.agekey").Manifest(plain)
	if err != nil || reflect.ValueOf(got).Pointer() != reflect.ValueOf(plain).Pointer() {
		t.Errorf("%v, %v", got, err)
	}
}

func TestLoad(t *testing.T) {
	alone(t)
	for name, test := range map[string]struct {
		data map[string][]byte
		err  string
	}{
		"nothing":               {nil, "there is no key"},
		"keys by other names":   {map[string][]byte{"key.txt": read(t, "fleet.agekey")}, "there is no key"},
		"no age key":            {map[string][]byte{"a.agekey": []byte("sops-canary")}, "a.agekey: no age key can be read"},
		"a plugin's key":        {map[string][]byte{"a.agekey": []byte("AGE-PLUGIN-YUBIKEY-1QQQQQQQQQQ")}, "a.agekey: no age key can be read"},
		"no OpenPGP key":        {map[string][]byte{"a.asc": []byte("sops-canary")}, "a.asc: no OpenPGP key can be read"},
		"a public OpenPGP key":  {map[string][]byte{"a.asc": read(t, "public.asc")}, "a.asc: the OpenPGP key is a public one"},
		"a key with passphrase": {map[string][]byte{"a.asc": read(t, "locked.asc")}, "a.asc: the OpenPGP key has a passphrase"},
		"a good and a bad":      {map[string][]byte{"a.asc": read(t, "fleet.asc"), "b.agekey": []byte("x")}, "b.agekey: "},
		"a passphrase for sops": {map[string][]byte{"a.agekey": read(t, "fleet.agekey"), "sops.vault-token": []byte("sops-canary")}, ""},
		"a packet without end":  {map[string][]byte{"a.asc": []byte(strings.ReplaceAll(armoured("\x95\xff\xff\xff\xff"), "MESSAGE", "PRIVATE KEY BLOCK"))}, "a.asc: no OpenPGP key can be read"},
	} {
		if _, err := decrypt.Load(test.data); !matches(err, test.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzManifest: whatever a document says, it is decrypted or refused, and no error has a
// value of it.
func FuzzManifest(f *testing.F) {
	for _, name := range []string{"age.yaml", "pgp.yaml", "groups.yaml", "thing.yaml"} {
		text, err := yaml.YAMLToJSON(read(f, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	keys := load(f, "fleet.agekey", "fleet.asc")
	f.Fuzz(func(t *testing.T, text []byte) {
		var m map[string]any
		if json.Unmarshal(text, &m) != nil {
			return
		}
		_, err := keys.Manifest(m)
		if err != nil && strings.Contains(err.Error(), "sops-canary") {
			t.Error(errors.New("it quotes a value"))
		}
	})
}
