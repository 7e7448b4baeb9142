# The modules that the interpreter needs, in one file: a sandbox takes seconds to look for eight hundred of them in directories. What
# is compiled to machine code stays where it is.
#
# Run as a program when the image is made, it writes that file.

import importlib.machinery
import marshal
import os
import sys

FILE = '/usr/local/lib/berth-code/modules.bin'


class Modules:
    def __init__(self, kept):
        self.kept = kept

    def find_spec(self, name, path=None, target=None):
        if name not in self.kept:
            return None
        file, is_package, _ = self.kept[name]
        spec = importlib.machinery.ModuleSpec(name, self, origin=file, is_package=is_package)
        spec.has_location = True
        if is_package:
            spec.submodule_search_locations = [os.path.dirname(file)]
        return spec

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(self.get_code(module.__name__), module.__dict__)

    def get_code(self, name):
        return marshal.loads(self.kept[name][2])

    def get_filename(self, name):
        return self.kept[name][0]

    def is_package(self, name):
        return self.kept[name][1]

    def get_source(self, name):
        with open(self.kept[name][0], encoding='utf8') as file:
            return file.read()

    def get_data(self, path):
        with open(path, 'rb') as file:
            return file.read()


def use():
    try:
        with open(FILE, 'rb') as file:
            kept = marshal.load(file)
    except (OSError, ValueError, EOFError, TypeError):
        return
    sys.meta_path.insert(0, Modules(kept))


def write():
    sys.path.insert(0, os.path.dirname(FILE))
    import python_kernels  # noqa: F401
    import jupyter_client.asynchronous  # noqa: F401
    import jupyter_client.connect  # noqa: F401

    kept = {}
    for name, module in list(sys.modules.items()):
        spec = getattr(module, '__spec__', None)
        if spec is None or spec.name != name or not isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            continue
        # Ours may be replaced, and those that begin every program are there before.
        if name in ('modules', 'python_kernels') or name.split('.')[0] in ('encodings', 'importlib', 'site', 'os'):
            continue
        code = spec.loader.get_code(name)
        kept[name] = (spec.origin, spec.submodule_search_locations is not None, marshal.dumps(code))
    with open(FILE, 'wb') as file:
        marshal.dump(kept, file)


if __name__ == '__main__':
    write()
