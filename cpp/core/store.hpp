// A learner's state as named arrays: what state() writes and restore() reads.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace onkel {

struct Field {
    using Values =
        std::variant<std::vector<double>, std::vector<float>, std::vector<std::int64_t>, std::vector<std::uint64_t>>;
    std::vector<std::size_t> shape;  // empty: a scalar
    Values values;
};

class Store {
public:
    std::map<std::string, Field> fields;

    bool has(const std::string& name) const { return fields.count(name) != 0; }

    template <class V>
    void put(const std::string& name, std::vector<V> values, std::vector<std::size_t> shape) {
        fields[name] = {std::move(shape), std::move(values)};
    }

    template <class V>
    void put(const std::string& name, V value) {
        put(name, std::vector<V>{value}, {});
    }

    // The values of a field of `dimensions` axes, converted to V.
    template <class V>
    std::vector<V> get(const std::string& name, std::size_t dimensions) const {
        const Field& field = at(name);
        if (field.shape.size() != dimensions) refuse(name, "has the wrong number of axes");
        return std::visit(
            [&]<class Stored>(const std::vector<Stored>& values) {
                if (std::is_integral_v<V> && !std::is_integral_v<Stored>) refuse(name, "must be whole numbers");
                return std::vector<V>(values.begin(), values.end());
            },
            field.values);
    }

    template <class V>
    V get(const std::string& name) const {
        const std::vector<V> values = get<V>(name, 0);
        if (values.size() != 1) refuse(name, "is not a single number");
        return values[0];
    }

    const std::vector<std::size_t>& shape(const std::string& name) const { return at(name).shape; }

    [[noreturn]] static void refuse(const std::string& name, const std::string& why) {
        throw std::invalid_argument("model state: '" + name + "' " + why);
    }

private:
    const Field& at(const std::string& name) const {
        const auto found = fields.find(name);
        if (found == fields.end()) refuse(name, "is missing");
        return found->second;
    }
};

}  // namespace onkel
